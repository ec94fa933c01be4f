package node

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// placeholders are the values of one node for ${ip}, ${host}, ${dir} and ${port.NAME}. Every
// other ${...} is the program's own and stays as it is.
type placeholders struct {
	ip, host, dir string
	ports         map[string]int
}

var placePattern = regexp.MustCompile(`\$\{(ip|host|dir|port\.[A-Za-z0-9_-]+)\}`)

func (p placeholders) expand(text string) (string, error) {
	var unknown []string
	expanded := placePattern.ReplaceAllStringFunc(text, func(place string) string {
		name := place[2 : len(place)-1]
		switch name {
		case "ip":
			return p.ip
		case "host":
			return p.host
		case "dir":
			return p.dir
		}
		number, known := p.ports[strings.TrimPrefix(name, "port.")]
		if !known {
			unknown = append(unknown, place)
		}
		return strconv.Itoa(number)
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("%s names no port of this program", strings.Join(unknown, ", "))
	}
	return expanded, nil
}

func (p placeholders) expandAll(texts []string) ([]string, error) {
	expanded := make([]string, 0, len(texts))
	for _, text := range texts {
		value, err := p.expand(text)
		if err != nil {
			return nil, err
		}
		expanded = append(expanded, value)
	}
	return expanded, nil
}

func (p placeholders) expandFiles(files []File) ([]File, error) {
	expanded := make([]File, 0, len(files))
	for _, file := range files {
		data, err := p.expand(string(file.Data))
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", file.Name, err)
		}
		expanded = append(expanded, File{Name: file.Name, Data: []byte(data)})
	}
	return expanded, nil
}
