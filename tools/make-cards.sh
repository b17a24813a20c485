#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes data/models/*.json from published config.json files. For developers, after the reader of
# config.json or the list below changed:
#   tools/make-cards.sh build/ci/bin/servecast ../shared/data/model_configs
# A file is named ORGANISATION--MODEL_config.json. What follows a tab in the list: the card's name
# (empty: from the file's name), aliases after commas, and what a hf_quant_config.json would say where
# the folder lacks it.
set -euo pipefail
servecast=$1
configs=$2
out=$(dirname "$0")/../data/models
collected="as collected in ai-dynamo/aiconfigurator at 095f58a"
third_party="as collected in inference-sim/inference-sim"

fp4_but_attention='{"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "*self_attn*"]}}'
fp4_experts='{"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "*self_attn*", "*shared_experts*", "*.mlp.*_proj"]}}'
fp4='{"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}'
fp8='{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}'
mxfp4='{"quantization": {"quant_algo": "MXFP4", "exclude_modules": ["lm_head"]}}'

# card FILE NAME ALIASES QUANT
card() {
  local file=$1 name=$2 aliases=$3 quant=$4 arguments=() source alias
  local stem=${file%_config.json}
  [[ -n $name ]] || name=${stem/--//}
  source="config.json of ${stem/--//}, $collected"
  [[ $file == blis--* ]] && source="config.json of $name, $third_party"
  [[ -n $quant ]] && source+="; precision as its publisher states, not from a file"
  IFS=, read -ra list <<<"$aliases"
  for alias in "${list[@]}"; do arguments+=(--alias "$alias"); done
  [[ -n $quant ]] && arguments+=(--quant "$quant")
  local base
  base=$(tr '[:upper:]' '[:lower:]' <<<"${name/\//--}")
  "$servecast" card "$configs/$file" "$name" --source "$source" \
    --licence "Apache-2.0 (the collection); the values are facts about the model" \
    "${arguments[@]}" >"$out/$base.json"
}

declare -A names aliases quants
names[blis--codellama-34b-instruct-hf]=codellama/CodeLlama-34b-Instruct-hf
names[blis--deepseek-v2-lite]=deepseek-ai/DeepSeek-V2-Lite
names[blis--llama-2-7b-hf]=meta-llama/Llama-2-7b-hf
names[blis--mistral-nemo-instruct-2407]=mistralai/Mistral-Nemo-Instruct-2407
names[blis--qwen2.5-7b-instruct]=Qwen/Qwen2.5-7B-Instruct
names[blis--qwen3-14b]=Qwen/Qwen3-14B
names[blis--yi-34b]=01-ai/Yi-34B
for size in 8B 70B 405B; do names[meta-llama--Meta-Llama-3.1-$size]=meta-llama/Llama-3.1-$size; done
aliases[meta-llama--Meta-Llama-3.1-70B]=meta-llama/Llama-3.3-70B-Instruct
aliases[deepseek-ai--DeepSeek-R1]=deepseek-ai/DeepSeek-R1-0528
aliases[deepseek-ai--DeepSeek-V3]=deepseek-ai/DeepSeek-V3-0324,deepseek-ai/DeepSeek-V3.1
aliases[zai-org--GLM-5]=zhipuai/GLM-5
for model in DeepSeek-V3.1-NVFP4 DeepSeek-V3.2-NVFP4; do quants[nvidia--$model]=$fp4_but_attention; done
quants[nvidia--GLM-5-NVFP4]=$fp4_experts
quants[nvidia--Llama-3.1-70B-Instruct-FP8]=$fp8
quants[nvidia--Qwen3-235B-A22B-NVFP4]=$fp4
aliases[nvidia--Qwen3-235B-A22B-NVFP4]=nvidia/Qwen3-235B-A22B-FP4
for model in Nano-30B-A3B-NVFP4 Super-120B-A12B-NVFP4 Ultra-550B-A55B-NVFP4; do
  quants[nvidia--NVIDIA-Nemotron-3-$model]=$fp4
done
quants[nvidia--NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4]=$fp4
for model in Super-120B-A12B-FP8 Ultra-550B-A55B-FP8; do quants[nvidia--NVIDIA-Nemotron-3-$model]=$fp8; done

rm -f "$out"/*.json
for path in "$configs"/*_config.json; do
  file=$(basename "$path")
  stem=${file%_config.json}
  card "$file" "${names[$stem]-}" "${aliases[$stem]-}" "${quants[$stem]-}"
done
# Checkpoints of the same shape in another precision.
r1=deepseek-ai--DeepSeek-R1_config.json
card $r1 nvidia/DeepSeek-R1-NVFP4 nvidia/DeepSeek-R1-FP4,nvidia/DeepSeek-R1-0528-FP4,nvidia/DeepSeek-R1-0528-NVFP4 "$fp4_but_attention"
card $r1 nvidia/DeepSeek-R1-0528-FP4-v2 nvidia/DeepSeek-R1-0528-NVFP4-v2 "$fp4"
card $r1 amd/DeepSeek-R1-0528-MXFP4-Preview "" "$mxfp4"
card Qwen--Qwen3-32B_config.json nvidia/Qwen3-32B-NVFP4 nvidia/Qwen3-32B-FP4 "$fp4"
card meta-llama--Meta-Llama-3.1-8B_config.json nvidia/Llama-3.1-8B-Instruct-FP8 "" "$fp8"
card meta-llama--Meta-Llama-3.1-8B_config.json nvidia/Llama-3.1-8B-Instruct-FP4 nvidia/Llama-3.1-8B-Instruct-NVFP4 "$fp4"
card meta-llama--Meta-Llama-3.1-70B_config.json nvidia/Llama-3.3-70B-Instruct-FP8 "" "$fp8"
card meta-llama--Meta-Llama-3.1-70B_config.json nvidia/Llama-3.3-70B-Instruct-FP4 nvidia/Llama-3.3-70B-Instruct-NVFP4 "$fp4"
card meta-llama--Meta-Llama-3.1-405B_config.json nvidia/Llama-3.1-405B-Instruct-FP8 meta-llama/Llama-3.1-405B-Instruct-FP8 "$fp8"
card meta-llama--Meta-Llama-3.1-405B_config.json nvidia/Llama-3.1-405B-Instruct-FP4 nvidia/Llama-3.1-405B-Instruct-NVFP4 "$fp4"
