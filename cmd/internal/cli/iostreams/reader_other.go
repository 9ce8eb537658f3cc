//go:build !unix

package iostreams

import "context"

// UntilReaderGone returns ctx: where pipes cannot be looked after, the next write finds out.
func (s *IOStreams) UntilReaderGone(ctx context.Context) (context.Context, func()) {
	return ctx, func() {}
}
