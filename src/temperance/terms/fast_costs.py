def chosen_route(n,p): return "spectral"
