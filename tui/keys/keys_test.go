package keys

import "testing"

// TestHelpFits: the help of no key is cut off on a terminal of 80 columns, of which the keys take 20.
func TestHelpFits(t *testing.T) {
	for _, b := range Table() {
		if len(b.Long) > 60 {
			t.Errorf("%q: %d columns: %s", b.Keys, len(b.Long), b.Long)
		}
	}
}
