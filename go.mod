module ndpip

go 1.25
