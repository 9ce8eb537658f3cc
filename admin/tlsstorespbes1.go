package admin

import (
	"crypto/cipher"
	"crypto/des" //nolint:gosec // keys that are encrypted with it are read, none is written
	"crypto/md5" //nolint:gosec // as for des
	"crypto/pbkdf2"
	"crypto/sha1" //nolint:gosec // as for des
	"crypto/x509/pkix"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"unicode/utf16"
)

// Java before 19 reads encrypted PEM keys in the forms that came before PBES2 only, so that many a key for Kafka is in
// one of them: openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES.

// pbes1Settings are the parameters of PBES1 (RFC 8018) and of the password based encryption of PKCS#12 (RFC 7292).
type pbes1Settings struct {
	Salt   []byte
	Rounds int
}

// pbes1 makes the cipher and the initial vector.
type pbes1 func(password string, s pbes1Settings) (cipher.Block, []byte, error)

var pbes1Schemes = map[string]pbes1{
	"1.2.840.113549.1.5.3":    pbkdf1(md5.New),
	"1.2.840.113549.1.5.10":   pbkdf1(sha1.New),
	"1.2.840.113549.1.12.1.3": pkcs12DES(24),
	"1.2.840.113549.1.12.1.4": pkcs12DES(16),
}

// pbkdf1 is DES with key and vector from repeated hashing of password and salt.
func pbkdf1(h func() hash.Hash) pbes1 {
	return func(password string, s pbes1Settings) (cipher.Block, []byte, error) {
		sum := repeated(h(), append([]byte(password), s.Salt...), s.Rounds)
		block, err := des.NewCipher(sum[:8])
		return block, sum[8:16], err
	}
}

// pkcs12DES is triple DES with two or three keys.
func pkcs12DES(size int) pbes1 {
	return func(password string, s pbes1Settings) (cipher.Block, []byte, error) {
		key := pkcs12Derive(password, s, 1, size)
		if size == 16 {
			key = append(key, key[:8]...)
		}
		block, err := des.NewTripleDESCipher(key)
		return block, pkcs12Derive(password, s, 2, des.BlockSize), err
	}
}

// pkcs12Derive makes size bytes for a purpose: 1 is a key, 2 an initial vector (RFC 7292, appendix B.2, with SHA-1).
func pkcs12Derive(password string, s pbes1Settings, purpose byte, size int) []byte {
	const block = sha1.BlockSize
	var wide []byte // UTF-16 with a zero at the end
	for _, c := range append(utf16.Encode([]rune(password)), 0) {
		wide = binary.BigEndian.AppendUint16(wide, c)
	}
	in := append(stretch(s.Salt, block), stretch(wide, block)...)
	var out []byte
	for {
		sum := repeated(sha1.New(), append(slices.Repeat([]byte{purpose}, block), in...), s.Rounds)
		if out = append(out, sum...); len(out) >= size {
			return out[:size]
		}
		add := stretch(sum, block)
		for at := 0; at < len(in); at += block {
			addOne(in[at:at+block], add)
		}
	}
}

// stretch repeats b up to a multiple of size bytes.
func stretch(b []byte, size int) []byte {
	if len(b) == 0 {
		return nil
	}
	n := (len(b) + size - 1) / size * size
	return slices.Repeat(b, n/len(b)+1)[:n]
}

// addOne adds b and one to a, numbers of the same length with the highest byte first.
func addOne(a, b []byte) {
	carry := 1
	for i := len(a) - 1; i >= 0; i-- {
		carry += int(a[i]) + int(b[i])
		a[i] = byte(carry)
		carry >>= 8
	}
}

// repeated hashes data, then the hash of it, rounds times in all.
func repeated(h hash.Hash, data []byte, rounds int) []byte {
	for range rounds {
		h.Reset()
		h.Write(data)
		data = h.Sum(nil)
	}
	return data
}

// keyScheme makes what opens a key that was encrypted so.
func keyScheme(how pkix.AlgorithmIdentifier, password string) (cipher.Block, []byte, error) {
	id := how.Algorithm.String()
	if id == oidPBES2 {
		return pbes2Scheme(how.Parameters.FullBytes, password)
	}
	scheme, ok := pbes1Schemes[id]
	if !ok {
		return nil, nil, fmt.Errorf("the private key is encrypted in a way that is not read (%s)", id)
	}
	var s pbes1Settings
	if err := parseDER(how.Parameters.FullBytes, &s); err != nil {
		return nil, nil, fmt.Errorf("an encrypted private key that is damaged: %w", err)
	}
	if err := checkRounds(s.Rounds); err != nil {
		return nil, nil, err
	}
	return scheme(password, s)
}

// pbes2Scheme reads the parameters of PBES2.
func pbes2Scheme(settings []byte, password string) (cipher.Block, []byte, error) {
	var scheme pbes2
	if err := parseDER(settings, &scheme); err != nil {
		return nil, nil, fmt.Errorf("an encrypted private key that is damaged: %w", err)
	}
	with, ok := keyCiphers[scheme.Encryption.Algorithm.String()]
	if !ok {
		return nil, nil, fmt.Errorf("the private key is encrypted with a cipher that is not read (%s)", scheme.Encryption.Algorithm)
	}
	derivation, err := derivationOf(scheme.Derivation)
	if err != nil {
		return nil, nil, err
	}
	secret, err := pbkdf2.Key(derivation.hash, password, derivation.Salt, derivation.Rounds, with.size)
	if err != nil {
		return nil, nil, err
	}
	block, err := with.make(secret)
	if err != nil {
		return nil, nil, err
	}
	var iv []byte
	if err := parseDER(scheme.Encryption.Parameters.FullBytes, &iv); err != nil {
		return nil, nil, fmt.Errorf("an encrypted private key that is damaged: %w", err)
	}
	return block, iv, nil
}
