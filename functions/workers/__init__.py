"""Workers: functions that a stream, a queue or a rule triggers."""
