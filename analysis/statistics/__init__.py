"""What may be said of a fall: the judgement, its looks and sequence, reproduction, planning and calibration."""
