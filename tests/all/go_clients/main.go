// A client of kymo, by libraries of Prometheus' project. Words: `write URL TOKEN MILLISECONDS` or `ask URL SECONDS`. Each
// answer is a line of JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

func say(what any) {
	line, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	switch os.Args[1] {
	case "write":
		write(os.Args[2], os.Args[3], number(os.Args[4]))
	case "ask":
		ask(os.Args[2], number(os.Args[3]))
	}
}
