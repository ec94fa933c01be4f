package grafana

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// schemaVersion is of Grafana 10 and later; older pages are migrated when they are loaded.
const schemaVersion = 39

const (
	gridWidth   = 24
	chartWidth  = 12
	chartHeight = 8
	statWidth   = 4
	statHeight  = 4
)

type object = map[string]any

// JSON renders a dashboard as Grafana provisions it from a file: the bare page, without an id.
func (d Dashboard) JSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // queries stay readable
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"id": nil, "uid": d.UID, "title": d.Title, "description": d.About, "tags": []string{"jaegerlab"},
		"schemaVersion": schemaVersion, "version": 1, "editable": true, "refresh": "5s", "timezone": "browser",
		"time":         object{"from": "now-10m", "to": "now"},
		"graphTooltip": 1, // one crosshair on all panels
		"links": []object{{
			"type": "dashboards", "tags": []string{"jaegerlab"}, "title": "jaegerlab", "asDropdown": false, "keepTime": true,
		}},
		"panels": d.panels(),
	})
	if err != nil {
		return nil, fmt.Errorf("render dashboard %s: %w", d.UID, err)
	}
	return text.Bytes(), nil
}

func (d Dashboard) panels() []object {
	var panels []object
	x, y, height := 0, 0, 0
	for i, p := range d.Panels {
		w, h := chartWidth, chartHeight
		if p.Stat {
			w, h = statWidth, statHeight
		}
		if x+w > gridWidth || x > 0 && h != height {
			x, y = 0, y+height
		}
		height = h
		panels = append(panels, p.json(i+1, object{"x": x, "y": y, "w": w, "h": h}))
		x += w
	}
	return panels
}

func (p Panel) json(id int, place object) object {
	source := object{"type": "prometheus", "uid": Source}
	var targets []object
	for i, q := range p.Queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.Expr, "legendFormat": q.Legend,
			"range": !p.Stat, "instant": p.Stat,
		})
	}
	panel := object{
		"id": id, "title": p.Title, "description": p.About, "gridPos": place, "datasource": source, "targets": targets,
	}
	defaults := object{"unit": p.Unit}
	if p.Stat {
		panel["type"] = "stat"
		panel["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "graphMode": "none", "colorMode": "none"}
	} else {
		panel["type"] = "timeseries"
		panel["options"] = object{
			"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
		custom := object{"lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": false}
		if p.Stacked {
			custom["stacking"], custom["fillOpacity"] = object{"mode": "normal", "group": "A"}, 30
		}
		defaults["custom"], defaults["min"] = custom, 0
	}
	panel["fieldConfig"] = object{"defaults": defaults, "overrides": []any{}}
	return panel
}
