package admin

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"  //nolint:gosec // keys that are encrypted with it are read, none is written
	"crypto/sha1" //nolint:gosec // the default of PBKDF2 in RFC 8018
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"regexp"
)

// errKeyPassword says that a key did not open with the password.
var errKeyPassword = errors.New("the password does not open the private key")

// keyRoundsMax bounds the work that a file can ask for; openssl asks for 2048 rounds, Java for 10,000.
const keyRoundsMax = 10_000_000

// The form of an encrypted key (PKCS#8, RFC 5958) and of PBES2 with PBKDF2 (RFC 8018).
type (
	encryptedKey struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2 struct {
		Derivation pkix.AlgorithmIdentifier
		Encryption pkix.AlgorithmIdentifier
	}
	pbkdf2Settings struct {
		Salt      []byte
		Rounds    int
		KeyLength int                      `asn1:"optional"`
		PRF       pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

const (
	oidPBES2      = "1.2.840.113549.1.5.13"
	oidPBKDF2     = "1.2.840.113549.1.5.12"
	oidScrypt     = "1.3.6.1.4.1.11591.4.11"
	oidHMACPrefix = "1.2.840.113549.2."
)

// keyHashes are the pseudo random functions of PBKDF2 that Java and openssl write.
var keyHashes = map[string]func() hash.Hash{
	"":                   sha1.New,
	oidHMACPrefix + "7":  sha1.New,
	oidHMACPrefix + "8":  sha256.New224,
	oidHMACPrefix + "9":  sha256.New,
	oidHMACPrefix + "10": sha512.New384,
	oidHMACPrefix + "11": sha512.New,
}

// keyCipher opens a private key: always in CBC mode.
type keyCipher struct {
	size int // of its key, in bytes
	make func([]byte) (cipher.Block, error)
}

var keyCiphers = map[string]keyCipher{
	"2.16.840.1.101.3.4.1.2":  {16, aes.NewCipher},
	"2.16.840.1.101.3.4.1.22": {24, aes.NewCipher},
	"2.16.840.1.101.3.4.1.42": {32, aes.NewCipher},
	"1.2.840.113549.3.7":      {24, des.NewTripleDESCipher},
}

// decryptKey opens the DER form of an ENCRYPTED PRIVATE KEY and returns that of a PRIVATE KEY (both PKCS#8). A password
// that does not fit is errKeyPassword.
func decryptKey(der []byte, password string) ([]byte, error) {
	var key encryptedKey
	if err := parseDER(der, &key); err != nil {
		return nil, fmt.Errorf("an encrypted private key that is damaged: %w", err)
	}
	block, iv, err := keyScheme(key.Algorithm, password)
	if err != nil {
		return nil, err
	}
	if len(iv) != block.BlockSize() || len(key.Data) == 0 || len(key.Data)%block.BlockSize() != 0 {
		return nil, errors.New("an encrypted private key that is damaged: its length is not that of whole blocks")
	}
	plain := make([]byte, len(key.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, key.Data)
	return unpadKey(plain, block.BlockSize())
}

// unpadKey takes the padding off. It, and the key's form, are what tells a right password from a wrong one.
func unpadKey(plain []byte, size int) ([]byte, error) {
	n := int(plain[len(plain)-1])
	if n < 1 || n > size || !bytes.HasSuffix(plain, bytes.Repeat([]byte{byte(n)}, n)) {
		return nil, errKeyPassword
	}
	plain = plain[:len(plain)-n]
	if _, err := x509.ParsePKCS8PrivateKey(plain); err != nil {
		return nil, errKeyPassword
	}
	return plain, nil
}

// derivation is how PBKDF2 makes a key.
type derivation struct {
	pbkdf2Settings
	hash func() hash.Hash
}

func derivationOf(how pkix.AlgorithmIdentifier) (d derivation, err error) {
	switch id := how.Algorithm.String(); id {
	case oidPBKDF2:
	case oidScrypt:
		return d, errors.New("the private key is encrypted with scrypt, which Java does not read either")
	default:
		return d, fmt.Errorf("the private key is encrypted with a derivation that is not read (%s)", id)
	}
	if err := parseDER(how.Parameters.FullBytes, &d.pbkdf2Settings); err != nil {
		return d, fmt.Errorf("an encrypted private key that is damaged: %w", err)
	}
	prf := d.PRF.Algorithm.String()
	if len(d.PRF.Algorithm) == 0 {
		prf = ""
	}
	if d.hash = keyHashes[prf]; d.hash == nil {
		return d, fmt.Errorf("the private key is encrypted with a hash that is not read (%s)", prf)
	}
	return d, checkRounds(d.Rounds)
}

func checkRounds(n int) error {
	if n < 1 || n > keyRoundsMax {
		return fmt.Errorf("the private key asks for %d rounds of hashing, and at most %d are done", n, keyRoundsMax)
	}
	return nil
}

// parseDER reads the whole of data.
func parseDER(data []byte, into any) error {
	rest, err := asn1.Unmarshal(data, into)
	if err == nil && len(rest) > 0 {
		return fmt.Errorf("%d bytes too many", len(rest))
	}
	return err
}

// The kinds of PEM blocks that hold a private key which is not to be had without a password.
const (
	encryptedBlock = "ENCRYPTED PRIVATE KEY"
	plainBlock     = "PRIVATE KEY"
)

// openKey returns the PEM text with an encrypted private key decrypted in it; a text without one as it is. An error
// names the settings; its hint says what to do.
func openKey(text []byte, password, from string) ([]byte, error) {
	var out bytes.Buffer
	found := false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == encryptedBlock || block.Headers["DEK-Info"] != "" {
			der, err := openBlock(block, password)
			if err != nil {
				return nil, refuseKey(err, password, from)
			}
			found, block = true, &pem.Block{Type: plainBlock, Bytes: der}
		}
		if err := pem.Encode(&out, block); err != nil {
			return nil, badInput("%s: %v", from, err)
		}
	}
	if !found {
		return text, nil
	}
	return out.Bytes(), nil
}

// errOldPEM is about OpenSSL's own form of encryption, which Java does not read either.
var errOldPEM = errors.New("the private key is encrypted in OpenSSL's old form (DEK-Info), not as PKCS#8")

func openBlock(block *pem.Block, password string) ([]byte, error) {
	switch {
	case block.Type != encryptedBlock:
		return nil, errOldPEM
	case password == "":
		return nil, errors.New("the private key is encrypted, and no password is set")
	}
	return decryptKey(block.Bytes, password)
}

func refuseKey(err error, password, from string) error {
	e := badInput("%s: %v", from, err)
	switch {
	case errors.Is(err, errKeyPassword):
		e.Hint = "ssl.key.password is wrong"
	case errors.Is(err, errOldPEM), password != "":
		e.Hint = "openssl pkcs8 -topk8 -v2 aes-256-cbc writes the key in a form that is read"
	default:
		e.Hint = "set ssl.key.password"
	}
	return e
}

// pemMark is a line that begins or ends a block of PEM.
var pemMark = regexp.MustCompile(`\s*(-----(?:BEGIN|END) [A-Z0-9 ]+-----)[ \t]*\r?\n?`)

// loosePEM puts line breaks around the lines that begin and end a block: a Java client takes a certificate that stands
// in a properties file with blanks instead of them, as continuation lines make it.
func loosePEM(text string) []byte {
	return []byte(pemMark.ReplaceAllString(text, "\n${1}\n"))
}
