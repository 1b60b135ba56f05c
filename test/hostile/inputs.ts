/** Texts that are costly to read for who reads them in the usual way, of any size. */

export const HOSTILE_TEXTS: Readonly<Record<string, (size: number) => string>> = {
  'one letter': (size) => 'a'.repeat(size),
  spaces: (size) => `${' '.repeat(size)}x`,
  'letters and spaces': (size) => 'a '.repeat(size / 2),
  brackets: (size) => '['.repeat(size),
  backslashes: (size) => '\\'.repeat(size),
  quotes: (size) => '"'.repeat(size),
  'escaped quotes': (size) => '\\"'.repeat(size / 2),
  escapes: (size) => '\\u0041\\x41%41&#65;'.repeat(size / 19),
  'deep JSON': (size) => `${'{"a":['.repeat(size / 8)}${']}'.repeat(size / 8)}`,
  'wide JSON': (size) => `[${'{},'.repeat(size / 3)}{}]`,
  'empty lines': (size) => '\n'.repeat(size),
  'other line ends': (size) => '\r\n'.repeat(size / 2),
  'returns alone': (size) => '\r'.repeat(size),
  'a huge number': (size) => '9'.repeat(size),
  'many numbers': (size) => '1e308,'.repeat(size / 6),
  'open tags': (size) => '<title>'.repeat(size / 7),
  'the words of errors': (size) => 'model "input" content tool use '.repeat(size / 31),
  'half characters': (size) => '\ud83d'.repeat(size),
  'control characters': (size) => '\u0000\u001b[0m\u0007'.repeat(size / 6),
}

/** Bytes that are no UTF-8. */
export const brokenBytes = (size: number) => Buffer.alloc(size, Buffer.from([0xf0, 0x9f, 0x80, 0xc3, 0x28, 0xff]))
