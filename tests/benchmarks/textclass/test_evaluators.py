"""Answers, and what each evaluator makes of them."""

import pytest

from coevolve.benchmarks.textclass.evaluators import (
    Evaluator,
    evaluate_label,
    evaluate_law,
    evaluate_s2d,
    evaluate_uspto,
    final_answer,
)

DEEP = '{"a": {"b": {}}, "final_answer": "abc"}'
PARTS = ("[DIAGNOSIS]", "[罪名]", "{", "{}", "diagnosis:", "```", "罪名:\n", "[罪名]\n")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", ""),
        ("raw text", "raw text"),
        ("  raw text\n", "  raw text\n"),
        ('{"final_answer": "abc"}', "abc"),
        ('```json\n{"reasoning": "r", "final_answer": "abc"}\n```', "abc"),
        ('```json\n{"final_answer": "abc"}', "abc"),
        ('```json {"final_answer": "abc"}```', "abc"),
        ('```\n{"final_answer": "abc"}\n```', "abc"),
        ('```\n{"final_answer": "abc"}', "abc"),
        ('```python\nx = 1\n```\n```json\n{"final_answer": "abc"}\n```', "abc"),
        ('I think so. {"reasoning": {"a": "b"}, "final_answer": "abc"} Done.', "abc"),
        ('{"final_answer": 7}', "7"),
        ('{"final_answer": ["a", "b"]}', "['a', 'b']"),
        ('{"final_answer": ""}', ""),
        ('{"answer": "abc"}', '{"answer": "abc"}'),
        ('["final_answer"]', '["final_answer"]'),
        # Only the first braces count, and only with one further level inside.
        ('{"note": 1} {"final_answer": "abc"}', '{"note": 1} {"final_answer": "abc"}'),
        (f"so {DEEP}", f"so {DEEP}"),
        ('{"final_answer": "abc",}', '{"final_answer": "abc",}'),
        ("[" * 100_000, "[" * 100_000),
        ('{"final_answer": ' + "9" * 10_000 + "}", '{"final_answer": ' + "9" * 10_000 + "}"),
    ],
)
def test_the_final_answer(text: str, answer: str) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("answer", "gold", "correct"),
    [
        ("CCO.CC(=O)O", "CC(=O)O.CCO", True),
        (" CCO . CC(=O)O. ", "CC(=O)O.CCO", True),
        ('{"final_answer": "CCO"}', "CCO", True),
        ("c1ccccc1", "C1CCCCC1", True),  # case is ignored, so aromatic is aliphatic
        ("CCO.CCO", "CCO", True),  # and a reactant given twice is there once
        ("OCC", "CCO", False),  # the same molecule, written another way
        ("CCO.CC(=O)O.O", "CCO.CC(=O)O", False),
        ("", "CCO", False),
        ("The reactants are CCO", "CCO", False),
    ],
)
def test_uspto_compares_sets_of_reactants(answer: str, gold: str, correct: bool) -> None:
    assert evaluate_uspto(answer, gold).correct is correct


def test_uspto_measures_the_overlap() -> None:
    assert evaluate_uspto("CCO.N", "cco.O").metrics == {"jaccard": 1 / 3}
    assert evaluate_uspto("", "CCO").metrics == {"jaccard": 0.0}
    assert evaluate_uspto("CCO.N", "N.CCO").metrics == {"jaccard": 1.0}


@pytest.mark.parametrize(
    ("answer", "correct"),
    [
        ("[DIAGNOSIS]chicken pox[/DIAGNOSIS]", True),
        ("[diagnosis]\n Chicken   POX!\n[/Diagnosis]", True),
        ("Itching ... [DIAGNOSIS]chicken pox[/DIAGNOSIS] or [DIAGNOSIS]acne[/DIAGNOSIS]", True),
        ('{"final_answer": "[DIAGNOSIS]Chicken pox[/DIAGNOSIS]"}', True),
        ('{"final_answer": "chicken pox"}', True),
        ("Spots.\nFinal diagnosis: Chicken pox.\nRest well.", True),
        ("conclusion：chicken pox", True),
        ("Diagnosis:\n\nchicken pox", True),
        ("chicken pox?!", True),
        ("chicken pox .", False),
        ("[DIAGNOSIS]chicken pox", False),
        ("It is chicken pox", False),
        ("chickenpox", False),
        ("", False),
    ],
)
def test_s2d_compares_diagnoses(answer: str, correct: bool) -> None:
    assert evaluate_s2d(answer, "chicken pox").correct is correct


@pytest.mark.parametrize(
    ("answer", "gold", "correct"),
    [
        ("[罪名]盗窃<eoa>", "盗窃", True),
        ("先说理由。\n[罪名]盗窃;诈骗<eoa>谢谢", "诈骗;盗窃", True),
        ("[罪名]盗窃；诈骗", "盗窃;诈骗", True),
        ("盗窃，诈骗", "盗窃;诈骗", True),
        ("罪名:抢劫\n罪名:盗窃", "盗窃", True),
        ("盗窃<eoa>诈骗", "盗窃", True),
        ('{"final_answer": "[罪名]盗窃<eoa>"}', "盗窃", True),
        ("盗窃;盗窃;", "盗窃", True),
        # A single charge with 、 falls apart on both sides, so its order does not matter.
        ("抢夺、盗窃枪支", "盗窃枪支、抢夺", True),
        # Only the first kind of separator present is one.
        ("走私、贩卖毒品;盗窃", "盗窃;走私、贩卖毒品", True),
        ("走私;贩卖毒品;盗窃", "盗窃;走私、贩卖毒品", False),
        ("盗窃罪", "盗窃", False),
        ("盗窃", "盗窃;诈骗", False),
        ("盗窃;诈骗", "盗窃", False),
        # The mark and its end stand on one line, or the mark on the last.
        ("[罪名]\n盗窃<eoa>", "盗窃", False),
        ("[罪名]待定\n[罪名]盗窃", "盗窃", True),
        ("", "盗窃", False),
    ],
)
def test_law_compares_sets_of_charges(answer: str, gold: str, correct: bool) -> None:
    assert evaluate_law(answer, gold).correct is correct


def test_law_measures_precision_and_recall() -> None:
    metrics = evaluate_law("[罪名]盗窃;诈骗;抢劫<eoa>", "盗窃;赌博").metrics
    assert metrics == pytest.approx(
        {"precision": 1 / 3, "recall": 1 / 2, "f1": 0.4, "tp": 1, "fp": 2, "fn": 1}
    )
    assert evaluate_law("", "盗窃").metrics["f1"] == 0.0


@pytest.mark.parametrize(
    ("answer", "correct"),
    [
        ("reset password", True),
        (" Reset\n Password. ", True),
        ("RESET PASSWORD ?", True),
        ('```json\n{"final_answer": "Reset password"}\n```', True),
        ("reset-password", False),
        ("please reset password", False),
        ("", False),
    ],
)
def test_labels_are_compared_without_case_spaces_and_final_punctuation(
    answer: str, correct: bool
) -> None:
    assert evaluate_label(answer, "Reset password").correct is correct


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("evaluate", [evaluate_label, evaluate_uspto, evaluate_s2d, evaluate_law])
def test_an_answer_made_to_hold_up_the_evaluator_is_wrong_at_once(
    part: str, evaluate: Evaluator
) -> None:
    assert not evaluate("{" + part * (1_000_000 // len(part)), "x").correct
