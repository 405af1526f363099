"""Exports small configurations of published architectures, and compares what Cutaway makes of them with PyTorch.

    python try_architectures.py export FOLDER [--only NAME...] [--variants fixed dynamic bf16 train ...]
    python try_architectures.py check FOLDER CUTAWAY_CLI [--only NAME...] [--variants ...] [--backends reference cpu] [--freeze]
    python try_architectures.py list

`export` needs PyTorch 2.11, transformers, timm, torchvision and safetensors; `check` needs only the folder. Weights and
inputs are random by fixed seeds. An architecture is a row of one of the tables below; none is treated specially: what cannot
be exported is reported as such and counts as not tried. A variant is a folder beside the others: model.pt2, one pair
inputs_K.safetensors / expected_K.safetensors for each size tried, and kind.json, which says how to compare.

Variants: fixed; dynamic (batch and, where there is one, sequence are symbols, tried at three sizes); bf16; train (exported in
training mode, differentiated); nograd (under torch.no_grad), autocast (bf16), strict.
"""
import argparse
import json
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

VARIANTS = ["fixed", "dynamic", "bf16", "train", "nograd", "autocast", "strict"]

# Names of configuration fields, over all of transformers, that decide the size of a model: each that a configuration has is set.
SMALL = {
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embedding_size": 32, "embed_dim": 32, "num_hidden_layers": 2,
    "n_layer": 2, "n_layers": 2, "num_layers": 2, "encoder_layers": 2, "decoder_layers": 2, "num_decoder_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "n_head": 4, "n_heads": 4, "num_heads": 4, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "intermediate_size": 64, "ffn_dim": 64, "d_ff": 64, "hidden_dim": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "n_inner": 64,
    "vocab_size": 100, "max_position_embeddings": 64, "n_positions": 64, "head_dim": 8, "d_kv": 8, "word_embed_proj_dim": 32,
    "moe_intermediate_size": 32, "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "shared_expert_intermediate_size": 32,
    "rotary_dim": 8, "image_size": 32, "patch_size": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "type_vocab_size": 2,
    "num_mel_bins": 16, "max_source_positions": 32, "max_target_positions": 32, "projection_dim": 16, "state_size": 8, "time_step_rank": 4,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "attention_window": 8, "d_embed": 32, "d_inner": 64,
    "expert_capacity": 4, "decoder_start_token_id": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "v_head_dim": 8,
    "qk_nope_head_dim": 8, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "num_experts_per_token": 2, "decoder_hidden_size": 32,
    "decoder_intermediate_size": 64, "decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 4, "lm_head_hidden_size": 32,
    "embedding_dim": 32, "true_hidden_size": 32, "intra_bottleneck_size": 32,
}
TEXT = ("albert bert big_bird biogpt bloom camembert codegen cohere convbert ctrl deberta deberta-v2 distilbert electra ernie esm falcon fnet "
        "gemma gemma2 gemma3_text gpt2 gpt_bigcode gpt_neo gpt_neox gptj granite helium ibert layoutlm llama longformer mamba megatron-bert "
        "mistral mixtral mobilebert modernbert mpnet mpt nystromformer olmo olmo2 openai-gpt opt persimmon phi phi3 qwen2 qwen2_moe qwen3 "
        "qwen3_moe rembert roberta roformer rwkv squeezebert stablelm starcoder2 xglm xlm xlm-roberta xlnet xmod yoso").split()
SEQUENCES = "bart blenderbot fsmt led m2m_100 marian mbart mt5 pegasus plbart prophetnet switch_transformers t5".split()
IMAGES = ("beit convnext convnextv2 cvt data2vec-vision deit dinov2 efficientnet focalnet hiera levit mobilenet_v1 mobilenet_v2 mobilevit "
          "mobilevitv2 poolformer pvt pvt_v2 regnet resnet segformer swiftformer swin swinv2 vit vit_msn vitdet").split()
SOUNDS = "audio-spectrogram-transformer hubert sew unispeech wav2vec2 wavlm whisper".split()
TIMM = ("botnet26t_256 cait_xxs24_224 coat_lite_tiny coatnet_pico_rw_224 convmixer_768_32 convnext_atto crossvit_tiny_240 cspresnet50 darknet17 "
        "davit_tiny deit_tiny_distilled_patch16_224 densenet121 dla34 dm_nfnet_f0 edgenext_xx_small efficientformer_l1 efficientformerv2_s0 "
        "efficientnet_b0 efficientvit_b0 efficientvit_m0 eva02_tiny_patch14_224 fastvit_t8 fbnetc_100 focalnet_tiny_srf gcresnet33ts gernet_s "
        "ghostnet_050 gmixer_12_224 gmlp_ti16_224 halonet26t hardcorenas_a hgnetv2_b0 hiera_tiny_224 hrnet_w18_small inception_next_atto "
        "inception_v3 lambda_resnet26t lcnet_050 legacy_senet18 levit_128s mambaout_femto maxvit_pico_rw_256 mixer_s32_224 mixnet_s "
        "mnasnet_small mobilenetv3_small_050 mobilenetv4_conv_small mobileone_s0 mobilevit_xxs mobilevitv2_050 mvitv2_tiny nest_tiny "
        "nf_resnet26 pit_ti_224 poolformer_s12 pvt_v2_b0 rdnet_tiny regnety_002 repghostnet_050 repvgg_a0 repvit_m0_9 res2net50_26w_4s resmlp_12_224 "
        "resnest14d resnet18 resnetv2_50 resnext26ts rexnet_100 sebotnet33ts_256 selecsls42 semnasnet_050 sequencer2d_s shvit_s1 skresnet18 "
        "spnasnet_100 starnet_s1 swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 tiny_vit_5m_224 tinynet_e tnt_s_legacy_patch16_224 tresnet_m "
        "twins_pcpvt_small visformer_tiny vit_tiny_patch16_224 volo_d1_224 vovnet39a xception41 xcit_nano_12_p16_224").split()
VISION = ("alexnet deeplabv3_mobilenet_v3_large fcn_resnet50 googlenet lraspp_mobilenet_v3_large mc3_18 mnasnet0_5 mobilenet_v2 "
          "mobilenet_v3_small r3d_18 r2plus1d_18 raft_small regnet_x_400mf s3d shufflenet_v2_x0_5 squeezenet1_0 swin3d_t swin_v2_t vgg11_bn vit_b_32").split()


def architectures():
    """Name -> (package, argument)."""
    rows = [(name, "text") for name in TEXT] + [(name, "sequence") for name in SEQUENCES] + [(name, "image") for name in IMAGES]
    rows += [(name, "sound") for name in SOUNDS] + [(name, "timm") for name in TIMM] + [(name, "torchvision") for name in VISION]
    return {f"{'hf' if kind not in ('timm', 'torchvision') else kind}.{name}": (kind, name) for name, kind in rows}


# Image models whose sizes are lists beside these: only their depth is reduced.
AS_THEY_ARE = "convnext convnextv2 cvt efficientnet focalnet levit mobilevitv2 swin swinv2".split()


def small_configuration(name):
    from transformers import AutoConfig
    config = AutoConfig.for_model(name)
    if name in AS_THEY_ARE:
        if isinstance(getattr(config, "depths", None), list):
            config.depths = [1] * len(config.depths)
        return config
    for key, value in SMALL.items():
        if isinstance(getattr(config, key, None), int) or (key in ("head_dim", "n_inner", "num_key_value_heads", "pad_token_id") and hasattr(config, key)):
            try:
                setattr(config, key, value)
            except Exception:  # some are computed from others
                pass
    for key, value in {"use_cache": False, "attn_implementation": "sdpa", "return_dict": True}.items():
        if hasattr(config, key):
            setattr(config, key, value)
    for key in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        if hasattr(config, key):
            setattr(config, key, 0.1)
    if isinstance(getattr(config, "layer_types", None), list):
        try:
            config.layer_types = config.layer_types[:2]
        except AttributeError:
            pass
    if name == "xmod":
        config.default_language = "en_XX"
    return config


def make(kind, name):
    """The model, and a function of (batch, length) that makes its keyword inputs, with the dynamic dims of each."""
    import torch
    ids = lambda b, n: torch.randint(3, 100, (b, n))
    if kind in ("text", "sequence", "image", "sound"):
        from transformers import AutoModel
        config = small_configuration(name)
        try:
            model = AutoModel.from_config(config, attn_implementation="sdpa")
        except ValueError:
            model = AutoModel.from_config(config, attn_implementation="eager")
        if kind == "text":
            if name in ("mamba", "rwkv", "openai-gpt", "xlnet"):
                return model, lambda b, n: {"input_ids": ids(b, n)}, {"input_ids": (0, 1)}
            return model, lambda b, n: {"input_ids": ids(b, n), "attention_mask": torch.ones(b, n, dtype=torch.int64)}, \
                {"input_ids": (0, 1), "attention_mask": (0, 1)}
        if kind == "sequence":
            return model, lambda b, n: {"input_ids": ids(b, n), "decoder_input_ids": ids(b, n)}, {"input_ids": (0, 1), "decoder_input_ids": (0, 1)}
        if kind == "image":
            size = getattr(config, "image_size", 32)
            size = size if isinstance(size, int) else size[0]
            if name in AS_THEY_ARE + ["hiera", "swiftformer", "mobilevit"]:
                size = 256 if name == "mobilevitv2" else 64 if name in ("mobilevit", "cvt", "focalnet", "efficientnet", "convnext", "convnextv2") else 224
            return model, lambda b, n: {"pixel_values": torch.randn(b, getattr(config, "num_channels", 3), size, size)}, {"pixel_values": (0,)}
        if name == "whisper":
            return model, lambda b, n: {"input_features": torch.randn(b, 16, 64), "decoder_input_ids": ids(b, n)}, {"input_features": (0,), "decoder_input_ids": (0, 1)}
        if name == "audio-spectrogram-transformer":
            return model, lambda b, n: {"input_values": torch.randn(b, config.max_length, config.num_mel_bins)}, {"input_values": (0,)}
        return model, lambda b, n: {"input_values": torch.randn(b, 1600)}, {"input_values": (0,)}
    if kind == "timm":
        import timm
        model = timm.create_model(name, pretrained=False, num_classes=10)
        size = model.pretrained_cfg["input_size"][1]
        if not model.pretrained_cfg.get("fixed_input_size") and not any(k in name for k in ("vit", "swin", "bot", "halo", "lambda", "pit", "nest", "gm", "mixer", "resmlp")):
            size = 96 if "inception" not in name else 128
        return model, lambda b, n: {"x": torch.randn(b, 3, size, size)}, {"x": (0,)}
    import torchvision
    model = torchvision.models.get_model(name, weights=None, **({"weights_backbone": None} if "resnet50" in name or "deeplab" in name or "lraspp" in name else {}))
    if name == "raft_small":
        return model, lambda b, n: {"image1": torch.randn(b, 3, 128, 128), "image2": torch.randn(b, 3, 128, 128)}, {"image1": (0,), "image2": (0,)}
    if name in ("mc3_18", "r3d_18", "r2plus1d_18", "s3d", "swin3d_t"):
        return model, lambda b, n: {"x": torch.randn(b, 3, 16, 64, 64) if name == "s3d" else torch.randn(b, 3, 8, 64, 64)}, {"x": (0,)}
    size = 224 if "vit" in name else 64 if "swin" in name or "mobile" in name else 96
    return model, lambda b, n: {"x": torch.randn(b, 3, size, size)}, {"x": (0,)}


def leaves(value):
    import torch
    from torch.utils._pytree import tree_leaves
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def tuned(model):
    """Weights and statistics that are not the trivial ones of a fresh model."""
    import torch
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, value in list(model.named_parameters()) + list(model.named_buffers()):
            if not value.is_floating_point() or value.numel() == 0:
                continue
            noise = torch.rand(value.shape, generator=generator)
            if name.endswith("running_var"):
                value.copy_(0.5 + noise)
            elif value.dim() <= 1 and ("norm" in name or "bn" in name or "gamma" in name or "running_mean" in name):
                value.add_((0.2 * noise - 0.1).to(value.dtype))
    return model


def export_variant(kind, name, variant, folder):
    import torch
    from safetensors.torch import save_file
    torch.manual_seed(0)
    model, inputs, dims = make(kind, name)
    model = tuned(model).train(variant == "train")
    if variant == "bf16":
        model = model.bfloat16()
    cast = lambda v: {k: t.bfloat16() if variant == "bf16" and t.is_floating_point() else t for k, t in v.items()}
    text = any(1 in d for d in dims.values())
    sizes = [(3, 12), (2, 9), (5, 16)] if variant == "dynamic" else [(2, 12)]
    examples = [cast(inputs(b, n)) for b, n in sizes]
    spec = None
    if variant == "dynamic":
        spec = {k: {d: torch.export.Dim.AUTO for d in dims[k]} for k in examples[0]}

    class Wrapped(torch.nn.Module):
        """Gives the tensors of the result, in order."""

        def __init__(self):
            super().__init__()
            self.model = model

        def call(self, kw):
            if variant == "nograd":
                with torch.no_grad():
                    out = self.model(**kw)
            elif variant == "autocast":
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    out = self.model(**kw)
            else:
                out = self.model(**kw)
            return tuple(leaves(dict(out) if hasattr(out, "keys") else out))

    # Inputs are named: torch.export gives dims to parameters by name.
    names = ", ".join(examples[0])
    scope = {}
    exec(f"def forward(self, {names}):\n    return self.call(dict({', '.join(f'{n}={n}' for n in examples[0])}))", scope)
    Wrapped.forward = scope["forward"]
    wrapped = Wrapped().train(variant == "train")
    with torch.set_grad_enabled(variant == "train"):
        program = torch.export.export(wrapped, (), examples[0], dynamic_shapes=spec, strict=variant == "strict")
        folder.mkdir(parents=True, exist_ok=True)
        torch.export.save(program, folder / "model.pt2")
        # A size that the exporter has specialized stays a number: only sizes that its own guards let pass are tried.
        allowed = []
        for example in examples:
            try:
                program.module()(**example)
                allowed.append(example)
            except Exception:
                pass
        examples, sizes = allowed, [size for size, example in zip(sizes, examples) if any(example is one for one in allowed)]
        order = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
        for k, example in enumerate(examples):
            torch.manual_seed(5)
            flat = leaves(example)
            save_file({f"{i:04}": t.contiguous().clone() for i, t in enumerate(flat)}, folder / f"inputs_{k}.safetensors")
            if variant != "train":
                want = [t.detach().contiguous().clone() for t in wrapped(**example)]
                save_file({f"{i:04}": t for i, t in enumerate(want)}, folder / f"expected_{k}.safetensors")
    (folder / "kind.json").write_text(json.dumps({"variant": variant, "sizes": sizes, "inputs": order, "sequence": text}))


def export(arguments):
    import torch
    import warnings
    import logging
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    for full, (kind, name) in architectures().items():
        if arguments.only and not {full, name, full.split(".")[0]} & set(arguments.only):
            continue
        for variant in arguments.variants:
            folder = Path(arguments.folder) / full / variant
            if (folder / "kind.json").exists() or (folder / "failed.txt").exists():
                continue
            start = time.time()
            try:
                export_variant(kind, name, variant, folder)
                print(f"{full} {variant} {time.time() - start:.1f} s", flush=True)
            except Exception as error:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "failed.txt").write_text(traceback.format_exc())
                print(f"{full} {variant} NOT EXPORTED {type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}", flush=True)


def run(command, seconds):
    start = time.time()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, text=True, errors="replace")
        code, text = done.returncode, done.stderr + done.stdout if done.returncode else ""
    except subprocess.TimeoutExpired:
        code, text = "timeout", ""
    return code, text.strip(), time.time() - start


def within_rounding(text):
    """Whether all outputs that differ do so by what bfloat16 rounds: a graph under autocast has float32 results of bfloat16 products."""
    errors = re.findall(r"DIFFERS: max abs error (\S+) of (\S+)", text)
    return bool(errors) and all(float(error) <= 0.03 * max(1.0, float(most)) for error, most in errors)


def check(arguments):
    counts = {}
    results = {}
    for full, (kind, name) in architectures().items():
        if arguments.only and not {full, name, full.split(".")[0]} & set(arguments.only):
            continue
        for variant in arguments.variants:
            folder = Path(arguments.folder) / full / variant
            if not (folder / "kind.json").exists():
                continue
            facts = json.loads((folder / "kind.json").read_text())
            model = str(folder / "model.pt2")
            frozen = ["--freeze"] if arguments.freeze else []
            jobs = [("inference", [arguments.cli, "compile", model, *frozen])]
            if variant in ("train", "fixed", "dynamic") and not frozen:
                jobs.append(("training", [arguments.cli, "compile", model, "--mode", "training"]))
            if variant != "train":
                for backend in arguments.backends:
                    for k in range(len(facts["sizes"])):
                        jobs.append((f"{backend} {k}", [arguments.cli, "run", model, "--backend", backend, "--inputs", str(folder / f"inputs_{k}.safetensors"),
                                                        "--expect", str(folder / f"expected_{k}.safetensors"), *frozen]))
            for what, command in jobs:
                code, text, seconds = run(command, arguments.seconds)
                if code == 1 and variant == "autocast" and within_rounding(text):
                    code = 0
                key = (variant, what.split()[0])
                good = counts.setdefault(key, [0, 0])
                good[1] += 1
                if code == 0:
                    good[0] += 1
                else:
                    lines = [line for line in text.splitlines() if line.strip()]
                    print(f"{full} {variant} {what}: {code} {' | '.join(lines)[:arguments.width]}", flush=True)
                results[f"{full} {variant} {what}"] = {"status": code, "seconds": round(seconds, 2), "says": text[:1000]}
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))
    for (variant, what), (good, of) in counts.items():
        print(f"{variant:9} {what:10} {good} of {of}")
    return 0 if all(good == of for good, of in counts.values()) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["export", "check", "list"])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("cli", nargs="?")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["fixed", "dynamic"])
    parser.add_argument("--backends", nargs="*", default=["reference", "cpu"])
    parser.add_argument("--freeze", action="store_true", help="check frozen graphs, which compute what plain ones do")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--width", type=int, default=300)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.what == "list":
        print("\n".join(architectures()))
        return 0
    return export(arguments) if arguments.what == "export" else check(arguments)


if __name__ == "__main__":
    sys.exit(main())
