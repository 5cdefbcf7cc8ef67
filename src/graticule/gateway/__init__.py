"""The front door for partners and operators. It reads and forwards, and cannot write."""
