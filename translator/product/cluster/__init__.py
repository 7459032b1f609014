"""Jobs on other machines, through Dask: each is a pure function of what is sent with it."""
