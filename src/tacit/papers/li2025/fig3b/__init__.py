"""`li2025.fig3b` and `li2025.fig3c`: ResNet-18 on MNIST and CIFAR-10 with 2 labels and with 10."""
