module muster.example/bench/client

go 1.26
