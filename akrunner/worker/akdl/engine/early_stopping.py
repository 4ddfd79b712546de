"""Early stopping hooks, as TensorFlow's own."""


def _experimental():
    from akdl.engine.estimators import estimator_module

    return estimator_module().experimental


def stop_if_no_increase_hook(estimator, metric_name, max_steps_without_increase, **options):
    """A hook that stops training when a metric has not increased for so many steps."""
    return _experimental().stop_if_no_increase_hook(estimator, metric_name, max_steps_without_increase, **options)


def stop_if_no_decrease_hook(estimator, metric_name, max_steps_without_decrease, **options):
    """A hook that stops training when a metric has not decreased for so many steps."""
    return _experimental().stop_if_no_decrease_hook(estimator, metric_name, max_steps_without_decrease, **options)
