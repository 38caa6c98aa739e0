"""A short run of stress.py on perturbed tasks."""
import clusters
import stress


def test_steps_end_in_every_way(monkeypatch):
    monkeypatch.setenv('WEIR_PERTURB', '5')
    cluster = clusters.Cluster({'worker': 2})
    ended = stress.Stress(cluster.tasks['worker', 0].address, seed=5).run(1000)
    assert {'OK', 'INVALID_ARGUMENT', 'CANCELLED', 'DEADLINE_EXCEEDED'} <= set(ended)
    cluster.wait_until_idle()
    cluster.stop()
