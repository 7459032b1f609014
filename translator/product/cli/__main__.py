from gluonize.product.cli import main

main()
