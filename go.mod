module jaegerlab

go 1.26
