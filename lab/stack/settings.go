package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// settings is everything a collector was given, flat: "config." and the dotted path of the
// rendered configuration, "env." and the variable, "arg." and the position. Addresses that only
// the runtime knows stay placeholders, so that equal settings are equal from run to run.
// Passwords are not shown.
func settings(config map[string]any, env, args []string) map[string]string {
	flat := map[string]string{}
	if config != nil {
		flatten(flat, "config", config)
	}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		flat["env."+name] = value
	}
	for i, arg := range args {
		flat[fmt.Sprintf("arg.%d", i+1)] = arg
	}
	for key := range flat {
		if secret(key) {
			flat[key] = "(not shown)"
		}
	}
	return flat
}

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

func secret(key string) bool {
	last := strings.ToLower(key[strings.LastIndexAny(key, ".")+1:])
	return strings.Contains(last, "password") || strings.Contains(last, "token") || strings.Contains(last, "secret")
}
