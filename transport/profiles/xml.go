package profiles

import (
	"encoding/xml"
	"io"
	"slices"
	"strings"
)

// pickXML is [pick] for an XML document. A path names an element by the names of
// those around it, without the outermost and without namespaces: "Error.Code".
// A value is trimmed of the space around it.
func pickXML(r io.Reader, paths []string, found func(path, value string)) {
	d := xml.NewDecoder(r)
	var around []string
	for depth := 0; ; {
		token, err := d.RawToken() // no entities of its own, no memory of its nesting
		if err != nil {
			return
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return
			}
			around = append(around, token.Name.Local)
		case xml.EndElement:
			if depth--; depth < 0 {
				return
			}
			around = around[:depth]
		case xml.CharData:
			if depth < 2 {
				continue
			}
			path, value := strings.Join(around[1:], "."), strings.TrimSpace(string(token))
			if value != "" && slices.Contains(paths, path) {
				found(path, value)
			}
		}
	}
}
