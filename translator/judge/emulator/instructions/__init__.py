"""Instructions that the emulator lacks, or does in another way than the hardware."""
