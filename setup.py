"""The packages of the distribution: `translator/` is installed as `gluonize`, and `rules/` as `gluonize.rules`."""

from setuptools import find_packages, setup

FOLDERS = {"gluonize": "translator", "gluonize.rules": "rules"}


def packages(name: str, folder: str) -> list[str]:
    return [name, *(f"{name}.{found}" for found in find_packages(folder))]


setup(package_dir=FOLDERS, packages=[found for item in FOLDERS.items() for found in packages(*item)])
