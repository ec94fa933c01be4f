package stack

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// settings is everything a collector was given, flat: "config." and the dotted path of the
// rendered configuration, "env." and the variable, "arg." and the position. Addresses that only
// the runtime knows stay placeholders, so that equal settings are equal from run to run.
// Passwords, tokens and other secrets are not shown: a report is sent around.
func settings(config map[string]any, env, args []string) map[string]string {
	flat := map[string]string{}
	if config != nil {
		flatten(flat, "config", config)
	}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		flat["env."+name] = value
	}
	for i, arg := range withoutSecrets(args) {
		flat[fmt.Sprintf("arg.%d", i+1)] = arg
	}
	for key, value := range flat {
		flat[key] = withoutPassword(value)
		if secret(key[strings.LastIndex(key, ".")+1:]) {
			flat[key] = notShown
		}
	}
	return flat
}

const notShown = "(not shown)"

func flatten(flat map[string]string, prefix string, value any) {
	switch v := value.(type) {
	case nil:
		flat[prefix] = "(default)"
	case map[string]any:
		if len(v) == 0 {
			flat[prefix] = "{}"
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			flatten(flat, prefix+"."+key, v[key])
		}
	case []string:
		flat[prefix] = strings.Join(v, ",")
	case []any:
		if words, ok := scalars(v); ok {
			flat[prefix] = strings.Join(words, ",")
			return
		}
		for i, inner := range v {
			flatten(flat, fmt.Sprintf("%s.%d", prefix, i), inner)
		}
	default:
		flat[prefix] = fmt.Sprint(v)
	}
}

func scalars(list []any) ([]string, bool) {
	var words []string
	for _, item := range list {
		switch item.(type) {
		case map[string]any, []any:
			return nil, false
		}
		words = append(words, fmt.Sprint(item))
	}
	return words, true
}

// secret reports whether a name (of a key, a variable or a flag) is that of something a report must
// not carry around.
func secret(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	return slices.ContainsFunc([]string{"password", "passwd", "token", "secret", "authorization", "api_key", "apikey"},
		func(word string) bool { return strings.Contains(name, word) })
}

// withoutSecrets hides the values of secret flags, written --name=value or --name value. A value may
// itself be a name with its value, as in --set=extensions.x.password=value.
func withoutSecrets(args []string) []string {
	shown := slices.Clone(args)
	for i, arg := range args {
		if at := firstSecret(arg); at < len(arg) {
			shown[i] = arg[:at] + notShown
		} else if i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") && secret(args[i-1]) {
			shown[i] = notShown
		}
	}
	return shown
}

// firstSecret is where in name=value=... the value of the first secret name begins.
func firstSecret(arg string) int {
	for i := range arg {
		if arg[i] == '=' && secret(arg[:i]) {
			return i + 1
		}
	}
	return len(arg)
}

// userinfo is the password in a URL, scheme://user:password@host.
var userinfo = regexp.MustCompile(`(://[^/@:\s]*:)[^/@\s]+@`)

func withoutPassword(value string) string {
	return userinfo.ReplaceAllString(value, "${1}"+notShown+"@")
}
