// Package exit holds the one table of exit codes and the errors that carry them.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"kctl/admin"
)

// Code is a process exit code.
type Code int

// The exit codes. They are part of the stable surface.
const (
	OK           Code = 0  // done
	Failed       Code = 1  // the operation failed
	Usage        Code = 2  // usage or bad input; nothing was contacted or written
	Partial      Code = 3  // partly done or partly answered
	Unauthorized Code = 4  // not authorised
	Unreachable  Code = 5  // unreachable or timed out
	Problems     Code = 10 // the check found problems
)

// Table lists the codes with their meaning, for the help text and the documentation.
func Table() []struct {
	Code    Code
	Meaning string
} {
	return []struct {
		Code    Code
		Meaning string
	}{
		{OK, "done"},
		{Failed, "failed"},
		{Usage, "usage or bad input, nothing contacted or written"},
		{Partial, "partly done or partly answered"},
		{Unauthorized, "not authorised"},
		{Unreachable, "unreachable or timed out"},
		{Problems, "the check found problems"},
	}
}

// Error is an error with a fixed exit code. An empty Msg prints nothing: everything was said already.
type Error struct {
	Code Code
	Msg  string
	Hint string
}

// Error returns the message.
func (e *Error) Error() string { return e.Msg }

// Usagef makes a usage error.
func Usagef(format string, args ...any) error {
	return &Error{Code: Usage, Msg: fmt.Sprintf(format, args...)}
}

// Silent makes an error that only sets the exit code.
func Silent(code Code) error { return &Error{Code: code} }

// CodeOf maps any error to its exit code. This is the only place that does.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if errors.Is(err, context.Canceled) {
		return Failed
	}
	if _, ok := errors.AsType[*admin.Error](err); !ok {
		if _, ok := errors.AsType[*fs.PathError](err); ok { // a full disk is no network: errno looks like an error of it
			return Failed
		}
	}
	switch admin.KindOf(err) {
	case admin.BadInput:
		return Usage
	case admin.Unauthorized:
		return Unauthorized
	case admin.Unreachable:
		return Unreachable
	default:
		return Failed
	}
}

// HintOf returns what the user can do about err, if it says.
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return admin.HintOf(err)
}

// Document is an error for programs: one object on stderr.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Code       Code   `json:"code" doc:"the exit code"`
	Error      string `json:"error"`
	Hint       string `json:"hint" doc:"what to do about it; may be empty"`
}
