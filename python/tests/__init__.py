import os

# Whether AddressSanitizer is loaded, whose checks take several times as long: bounds of time are wider then.
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
