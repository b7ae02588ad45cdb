"""`allenzhu2020.table1`: robust and clean accuracy of ResNet-34 on CIFAR-10 against four attackers."""
