package replicashell

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// codeError makes an error of a code of the protocol; nil for none.
func codeError(what string, code int16) error {
	if err := kerr.ErrorForCode(code); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
