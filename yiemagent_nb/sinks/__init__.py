"""Event sinks: functions that see every event of an agent, ``Trace`` included.

Give one to an agent as ``event_sink``, or later with ``agent.set_event_sink(sink)``.
"""
