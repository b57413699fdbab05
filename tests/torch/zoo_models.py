# SPDX-License-Identifier: Apache-2.0
"""The models of the zoo: real architectures of three packages, from small configurations.

A builder takes torch and the size of a batch and gives (net, batch, loss): batch () makes the inputs of
one step, loss (net, inputs) the scalar to be differentiated. Nothing is downloaded: weights are random.
"""

MODELS = []   # (package, name, builder)


def model(package, name):
    def add(builder):
        MODELS.append((package, name, builder))
        return builder
    return add


def images(torch, size, batch, classes=10):
    return lambda: (torch.randn(batch, 3, size, size), torch.randint(classes, (batch,)))


def classify(torch, pick=lambda out: out):
    def loss(net, inputs):
        x, y = inputs
        return torch.nn.functional.cross_entropy(pick(net(x)), y)
    return loss


# ---- torchvision -----------------------------------------------------------------------------

def vision(name, size, **kwargs):
    @model("torchvision", name)
    def build(torch, batch):
        import torchvision
        net = getattr(torchvision.models, name)(weights=None, num_classes=10, **kwargs)
        return net, images(torch, size, batch), classify(torch)


vision("resnet18", 48)
vision("squeezenet1_1", 64)
vision("mobilenet_v2", 48)
vision("mobilenet_v3_small", 48)
vision("shufflenet_v2_x0_5", 48)


@model("torchvision", "densenet (2-2-2)")
def _densenet(torch, batch):
    from torchvision.models.densenet import DenseNet
    net = DenseNet(growth_rate=12, block_config=(2, 2, 2), num_init_features=24, bn_size=2, drop_rate=0.1, num_classes=10)
    return net, images(torch, 48, batch), classify(torch)


@model("torchvision", "resnet (basic 1-1-1-1, GroupNorm)")
def _resnet_group_norm(torch, batch):
    import torchvision.models.resnet as resnet
    net = resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1], num_classes=10,
                        norm_layer=lambda channels: torch.nn.GroupNorm(8, channels))
    return net, images(torch, 64, batch), classify(torch)


@model("torchvision", "vision transformer (2 layers)")
def _vit(torch, batch):
    from torchvision.models.vision_transformer import VisionTransformer
    net = VisionTransformer(image_size=64, patch_size=8, num_layers=2, num_heads=4, hidden_dim=128, mlp_dim=256,
                            dropout=0.1, attention_dropout=0.1, num_classes=10)
    return net, images(torch, 64, batch), classify(torch)


@model("torchvision", "swin transformer (2 stages)")
def _swin(torch, batch):
    from torchvision.models.swin_transformer import SwinTransformer
    net = SwinTransformer(patch_size=[4, 4], embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4],
                          stochastic_depth_prob=0.2, num_classes=10)
    return net, images(torch, 64, batch), classify(torch)


@model("torchvision", "convnext (1-1-2-1)")
def _convnext(torch, batch):
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    settings = [CNBlockConfig(32, 64, 1), CNBlockConfig(64, 96, 1), CNBlockConfig(96, 128, 2), CNBlockConfig(128, None, 1)]
    return ConvNeXt(settings, stochastic_depth_prob=0.1, num_classes=10), images(torch, 64, batch), classify(torch)


@model("torchvision", "lraspp_mobilenet_v3_large")
def _segmentation(torch, batch):
    import torchvision
    net = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)

    def loss(net, inputs):
        x, y = inputs
        return torch.nn.functional.cross_entropy(net(x)["out"], y)
    return net, lambda: (torch.randn(batch, 3, 64, 64), torch.randint(5, (batch, 64, 64))), loss


@model("torchvision", "mc3_18 (video)")
def _video(torch, batch):
    import torchvision
    net = torchvision.models.video.mc3_18(weights=None, num_classes=10)
    return net, lambda: (torch.randn(batch, 3, 4, 32, 32), torch.randint(10, (batch,))), classify(torch)


# ---- transformers ----------------------------------------------------------------------------

VOCABULARY = 200


def tokens(torch, batch, length):
    return lambda: torch.randint(2, VOCABULARY, (batch, length))


def language(name, config_name, length=48, **kwargs):
    """A language model that computes its own loss from labels."""
    @model("transformers", name)
    def build(torch, batch):
        import transformers
        config = getattr(transformers, config_name)(vocab_size=VOCABULARY, **kwargs)
        config.use_cache = False
        net = getattr(transformers, name)(config)
        make = tokens(torch, batch, length)

        def loss(net, ids):
            return net(input_ids=ids, labels=ids).loss
        return net, make, loss


def sizes(hidden=64, heads=4, layers=2, inner=128):
    return dict(hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=layers, intermediate_size=inner)


language("BertForMaskedLM", "BertConfig", **sizes())
language("RobertaForMaskedLM", "RobertaConfig", max_position_embeddings=80, **sizes())
language("AlbertForMaskedLM", "AlbertConfig", embedding_size=32, **sizes())
language("DistilBertForMaskedLM", "DistilBertConfig", dim=64, n_heads=4, n_layers=2, hidden_dim=128)
language("GPT2LMHeadModel", "GPT2Config", n_embd=64, n_head=4, n_layer=2, n_positions=64)
language("GPTNeoXForCausalLM", "GPTNeoXConfig", **sizes())
language("BloomForCausalLM", "BloomConfig", hidden_size=64, n_head=4, n_layer=2)
language("OPTForCausalLM", "OPTConfig", hidden_size=64, num_attention_heads=4, num_hidden_layers=2, ffn_dim=128,
         word_embed_proj_dim=64, max_position_embeddings=80)
language("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, max_position_embeddings=64, **sizes())
language("MistralForCausalLM", "MistralConfig", num_key_value_heads=2, sliding_window=16, **sizes())
language("MixtralForCausalLM", "MixtralConfig", num_key_value_heads=2, num_local_experts=4, **sizes())
language("T5ForConditionalGeneration", "T5Config", d_model=64, d_ff=128, d_kv=16, num_heads=4, num_layers=2,
         decoder_start_token_id=0, pad_token_id=0)
language("BartForConditionalGeneration", "BartConfig", d_model=64, encoder_layers=2, decoder_layers=2,
         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
         max_position_embeddings=80)
language("DebertaV2ForMaskedLM", "DebertaV2Config", relative_attention=True, pos_att_type=["p2c", "c2p"],
         position_buckets=16, **sizes())


@model("transformers", "ViTForImageClassification")
def _hf_vit(torch, batch):
    import transformers
    net = transformers.ViTForImageClassification(transformers.ViTConfig(image_size=32, patch_size=8, num_labels=10,
                                                                        **sizes()))
    return net, images(torch, 32, batch), classify(torch, lambda out: out.logits)


@model("transformers", "Wav2Vec2ForCTC")
def _wav2vec(torch, batch):
    import transformers
    net = transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(
        vocab_size=32, conv_dim=(32, 32, 32), conv_stride=(5, 4, 2), conv_kernel=(10, 4, 3), num_feat_extract_layers=3,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, mask_time_prob=0.0, **sizes()))
    return net, lambda: (torch.randn(batch, 4000), torch.randint(1, 32, (batch, 8))), \
        lambda net, inputs: net(inputs[0], labels=inputs[1]).loss


# ---- timm ------------------------------------------------------------------------------------

def timm_model(name, size=48, **kwargs):
    @model("timm", name)
    def build(torch, batch):
        import timm
        return timm.create_model(name, pretrained=False, num_classes=10, **kwargs), images(torch, size, batch), \
            classify(torch)


timm_model("resnet10t")
timm_model("resnext26ts")
timm_model("efficientnet_lite0")
timm_model("regnetx_002")
timm_model("dla34", size=64)
timm_model("convnext_atto", drop_path_rate=0.1)
timm_model("mixer_s32_224", size=64, img_size=64)
timm_model("vit_tiny_patch16_224", size=64, img_size=64, depth=3, drop_rate=0.1)
timm_model("deit_tiny_distilled_patch16_224", size=64, img_size=64, depth=3)
timm_model("levit_128s", size=224, num_heads=(2, 3, 4), depth=(1, 1, 1), embed_dim=(64, 96, 128))
timm_model("mobilevit_xxs", size=64)
timm_model("swin_tiny_patch4_window7_224", size=56, img_size=56, depths=(2, 2, 2, 1), embed_dim=48)
