package verb

import (
	"encoding/json"
	"fmt"

	"kctl/admin/rows"
	"kctl/cmd/internal/cli/output"
)

// Event writes one entry of an endless list as it comes: a line of text, a JSON object in one line, or a YAML document.
func Event[T any](p *output.Printer, k rows.Kind[T], e T, line string) error {
	switch p.Format {
	case output.JSON:
		head, err := json.Marshal(struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}{rows.APIVersion, k.Name})
		if err != nil {
			return err
		}
		body, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Out, "%s,%s\n", head[:len(head)-1], body[1:])
		return err
	case output.YAML:
		if _, err := fmt.Fprintln(p.Out, "---"); err != nil {
			return err
		}
		return output.One(p, k, e)
	case output.Name:
		_, err := fmt.Fprintln(p.Out, output.Clean(k.ID(e)))
		return err
	}
	_, err := fmt.Fprintln(p.Out, output.Clean(line))
	return err
}
