package setup

import "fmt"

// PublicImage is the image, with its tag, that a program's own project publishes and that the
// docker runtime takes first.
func PublicImage(program string) (string, error) {
	p, err := find(program)
	if err != nil {
		return "", err
	}
	if p.public == "" {
		return "", fmt.Errorf("find the public image of %s: nobody publishes one", program)
	}
	return p.public, nil
}
