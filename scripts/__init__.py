"""What is run by hand or by make; none of it is deployed."""
