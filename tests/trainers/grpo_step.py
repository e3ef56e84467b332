"""One step of TRL's own GRPOTrainer with `TrlReward`, on a tiny model made here; prints what TRL made of the rewards.

Run by tests/trainers/test_trl.py in an environment that has TRL: ASSAY_URL, ASSAY_API_KEY and a folder as argument.
"""

import json
import os
import pickle
import sys
from typing import Any

import torch
from assay.trl import TrlReward
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

WORDS = ["<pad>", "<eos>", "2", "+", "\\boxed{4}", "\\boxed{5}"]
"""The model's whole language, of which it says one word at random."""


def main(folder: str) -> None:
    """Train one step on two prompts, each sampled eight times."""
    torch.manual_seed(0)
    words = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
    shape = {"n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 1}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(WORDS), eos_token_id=1, bos_token_id=1, pad_token_id=0, **shape))
    config = GRPOConfig(
        output_dir=folder,
        max_steps=1,
        per_device_train_batch_size=16,
        num_generations=8,
        max_completion_length=1,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
    )
    rows = [
        {"prompt": "2 + 2", "solution": "4", "number": 0},
        {"prompt": "2 + 2 +", "solution": os.environ["OTHER_SOLUTION"], "number": 1},
    ]
    trainer = Recorded(
        model=model,
        processing_class=tokenizer,
        reward_funcs=[pickle.loads(pickle.dumps(TrlReward({"verifier": "math"})))],
        args=config,
        train_dataset=Dataset.from_list(rows),
    )
    trainer.train()
    print(json.dumps({"samples": trainer.samples, "log": trainer.state.log_history[0]}))  # noqa: T201


class Recorded(GRPOTrainer):
    """Keeps what the trainer computed."""

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        texts = self.processing_class.batch_decode(output["completion_ids"], skip_special_tokens=True)
        numbers = [row["number"] for row in inputs]
        self.samples = list(zip(numbers, texts, output["advantages"].tolist(), strict=True))
        return output


if __name__ == "__main__":
    main(sys.argv[1])
