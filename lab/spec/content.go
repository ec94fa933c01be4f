package spec

import "maps"

// contents are named shapes of what spans contain: values for settings that the environment
// leaves open. The original's is empty: the defaults are the original experiment.
var contents = map[string]map[string]string{
	"original": {},
	// A few services with busy operations, differing values and some errors: fills many partitions.
	"varied": {"LAB_SERVICES": "10", "LAB_OPERATIONS": "50", "LAB_SHAPE": "tree", "LAB_TAG_VALUES": "1000",
		"LAB_ERROR_PERCENT": "5", "LAB_EVENTS": "1", "LAB_RESOURCE_ATTRIBUTES": "5"},
	// A long chain of calls with few tags.
	"deep": {"SPANS_COUNT": "100", "TAGS_COUNT": "3", "LAB_SHAPE": "chain", "LAB_OPERATIONS": "20", "LAB_ERROR_PERCENT": "1"},
	// Few spans with much in each.
	"heavy": {"SPANS_COUNT": "4", "TAGS_COUNT": "30", "LAB_TAG_LENGTH": "200", "LAB_TAG_VALUES": "100000", "LAB_EVENTS": "5"},
}

// withContent lays what the environment names over the named content.
func withContent(vars map[string]string) (map[string]string, []error) {
	name, ok := vars["LAB_CONTENT"]
	if !ok {
		return vars, nil
	}
	values, ok := contents[name]
	if !ok {
		return vars, []error{problem("LAB_CONTENT", name, "accepted: "+accepted("LAB_CONTENT"))}
	}
	all := maps.Clone(values)
	maps.Copy(all, vars)
	return all, nil
}
