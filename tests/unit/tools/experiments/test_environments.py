"""Simulations as Gymnasium environments: they keep its rules, repeat by seed, and reward what is placed."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from kubesched.errors import ConfigError
from kubesched.tools.experiments import environments

SMALL: dict[str, Any] = {
    "duration": 600,
    "decisionTime": 0,
    "cluster": {
        "nodes": [
            {"name": "big", "count": 2, "capacity": {"cpu": "8", "memory": "32Gi"}},
            {"name": "tiny", "count": 3, "capacity": {"cpu": "2", "memory": "8Gi"}},
        ]
    },
    "workloads": [
        {"name": "half", "arrivals": {"every": 10, "count": 12}, "requests": {"cpu": "1", "memory": "1Gi"}},
        {"name": "wide", "arrivals": {"every": 30, "count": 2, "start": 5}, "requests": {"cpu": "4", "memory": "1Gi"}},
    ],
}


def played(env: Any, seed: int, choose: Any) -> tuple[list[float], dict[str, Any]]:
    seen, info = env.reset(seed=seed)
    rewards, is_over = [], False
    while not is_over:
        seen, reward, is_over, _, info = env.step(choose(seen, info))
        rewards.append(float(reward))
    return rewards, info["figures"]


@pytest.mark.parametrize("name", ["kubesched/Placement-v0", "kubesched/Weights-v0"])
def test_gymnasium_finds_nothing_to_complain_about(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, scenario=SMALL).unwrapped
        check_env(env, skip_render_check=True)
        env.close()


def test_an_episode_is_the_same_for_the_same_seed_and_actions_and_returns_what_is_in_use() -> None:
    env = gymnasium.make("kubesched/Placement-v0", scenario=SMALL)
    last = lambda seen, info: int(np.flatnonzero(info["action_mask"])[-1])  # noqa: E731
    once, again = played(env, 7, last), played(env, 7, last)
    assert once == again
    assert once[1]["pods"]["placed"] == len(once[0])
    assert sum(once[0]) == pytest.approx(100 * once[1]["utilisation"]["cpu"]["end"], abs=0.01)


def test_the_agent_chooses_and_a_node_without_room_means_the_next_going_round() -> None:
    env = gymnasium.make("kubesched/Placement-v0", scenario=SMALL).unwrapped
    _, info = env.reset(seed=1)
    assert info["action_mask"].tolist() == [1, 1, 1, 1, 1]
    info = env.step(4)[4]
    assert info["action_mask"].tolist() == [1, 1, 0, 0, 0]  # the second pod is wide
    env.step(4)
    assert sorted(record.node for record in env.sim.pods.values() if record.node) == ["big-0", "tiny-2"]
    env.close()


def test_environments_run_side_by_side() -> None:
    envs = gymnasium.make_vec("kubesched/Placement-v0", num_envs=2, vectorization_mode="sync", scenario=SMALL)
    seen, info = envs.reset(seed=[1, 2])
    assert seen["nodes"].shape == (2, 5, 7) and np.stack(info["action_mask"]).shape == (2, 5)
    seen, rewards, *_ = envs.step(np.array([4, 0]))
    assert (rewards > 0).all()
    envs.close()


def test_weights_take_effect_from_one_period_to_the_next() -> None:
    env = gymnasium.make("kubesched/Weights-v0", scenario=SMALL, period=60).unwrapped
    _, info = env.reset(seed=1)
    plugins = info["plugins"]
    assert "NodeResourcesFit" in plugins
    weights = np.zeros(len(plugins), dtype=np.float32)
    for i in range(10):
        weights[plugins.index("NodeResourcesFit")] = i / 10
        _, reward, is_over, _, info = env.step(weights)
        [profile] = env.sim.engine.profiles.values()
        assert {plugin.name: weight for plugin, weight in profile.scorers}["NodeResourcesFit"] == 10 * i
        assert 0 <= reward <= 10
    assert is_over and info["figures"]["pods"]["placed"] > 0
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(weights)
    env.close()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Placement-v0", {"scenario": {"workload": []}}, "scenario: Object contains unknown field `workload`"),
        ("Placement-v0", {"scenario": {}}, "scenario: cluster: expected nodes at the beginning"),
        ("Placement-v0", {"scenario": SMALL, "reward": "joy"}, "reward: 'joy' is none of cpu, memory, gpu"),
        (
            "Weights-v0",
            {"scenario": {**SMALL, "duration": None}},
            "scenario: duration: expected one: it is when an episode ends",
        ),
        ("Weights-v0", {"scenario": SMALL, "period": 0}, "period: expected more than 0 seconds, found 0"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(name: str, options: dict[str, Any], message: str) -> None:
    entry = environments.Placement if name == "Placement-v0" else environments.Weights
    with pytest.raises(ConfigError) as refused:
        entry(**options)
    assert str(refused.value) == message
