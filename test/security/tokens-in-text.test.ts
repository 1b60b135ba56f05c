/** Which values of a credential file are secret. */
import { expect, test } from 'vitest'
import { tokensInText as foundIn } from '../../src/security/tokens-in-text.ts'

const MOST = 1000
const tokensInText = (text: string) => foundIn(text, MOST).values

const base64 = (text: string) => Buffer.from(text).toString('base64')

const PRIVATE_KEY = '-----BEGIN PRIVATE KEY-----\nb3BlbnNz\naC1rZXk=\n-----END PRIVATE KEY-----\n'
const OTHER_KEY = '-----BEGIN RSA PRIVATE KEY-----\nb3RoZXI=\n-----END RSA PRIVATE KEY-----\n'
const KEYS = ['b3BlbnNz\naC1rZXk=', 'b3RoZXI=']

test.each([
  ['.npmrc', '//registry.example.com/:_authToken=npm_abcdef', ['npm_abcdef']],
  ['.npmrc with spaces and quotes', '_authToken = "npm_abcdef"', ['npm_abcdef']],
  ['.npmrc with a name and a password', `_auth=${base64('ada:secret-word')}`, ['ada:secret-word', 'secret-word']],
  ['.npmrc with a password', `//registry.example.com/:_password=${base64('secret-word')}`, ['secret-word']],
  ['.npmrc with a URL', 'proxy=http://ada:pass%40word@proxy.example.com', ['pass%40word', 'pass@word']],
  ['gh/hosts.yml', 'github.com:\n    users:\n        ada:\n            oauth_token: gho_abcdef\n', ['gho_abcdef']],
  [
    '.netrc',
    'machine example.com login ada password secret-word\nmachine b login c\n  password other-word',
    ['secret-word', 'other-word'],
  ],
  ['.git-credentials', 'https://ada:ghp_abcdef@github.com', ['ghp_abcdef']],
  ['.git-credentials with a token alone', 'https://ghp_abcdefghijklmnopqrst@github.com', ['ghp_abcdefghijklmnopqrst']],
  [
    '.pypirc',
    '[pypi]\nusername = __token__\npassword = pypi-abc;def # not a comment',
    ['pypi-abc;def # not a comment', 'pypi-abc'],
  ],
  ['.aws/credentials', 'aws_secret_access_key = abc/def+ghi\naws_session_token=xyz=', ['abc/def+ghi', 'xyz=']],
  ['.docker/config.json', `{"auths":{"r.example.com":{"auth":"${base64('ada:secret-word')}"}}}`, ['secret-word']],
  ['.cargo/credentials.toml', '[registry]\ntoken = "cio-abcdef"', ['cio-abcdef']],
  [
    'a private key',
    '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\naC1rZXk=\n-----END OPENSSH PRIVATE KEY-----',
    ['b3BlbnNz\naC1rZXk='],
  ],
  ['two private keys', `${PRIVATE_KEY}-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n${OTHER_KEY}`, KEYS],
  ['a private key in JSON', JSON.stringify({ private_key: PRIVATE_KEY }), ['b3BlbnNz\naC1rZXk=']],
  ['a password with quotes in JSON', JSON.stringify({ password: 'a"b\\c/d' }), ['a"b\\c/d']],
  ['.kube/config with a token', 'users:\n- name: ada\n  user:\n    token: abcdef.ghi\n', ['abcdef.ghi']],
  ['.kube/config with a key', `    client-key-data: ${base64(PRIVATE_KEY)}\n`, [base64(PRIVATE_KEY), KEYS[0]!]],
  [
    '.kube/config with a folded key',
    `    client-key-data: >-\n      ${base64(PRIVATE_KEY).slice(0, 60)}\n      ${base64(PRIVATE_KEY).slice(60)}\n`,
    [base64(PRIVATE_KEY).slice(0, 60), base64(PRIVATE_KEY).slice(60), KEYS[0]!],
  ],
  ['.kube/config in one line', '{user: {token: abcdef, client-key-data: ghijkl}}', ['abcdef', 'ghijkl']],
  ['.kube/config with variables of a program', 'env:\n- name: PLAIN\n  value: abcdefgh', ['abcdefgh']],
  ['a value on the next line of YAML', 'oauth_token:\n    gho_abcdef\nuser: ada', ['gho_abcdef']],
  ['a password in a block of YAML', 'password: |\n  secret-word\n', ['secret-word']],
  [
    'rclone.conf, with JSON in a value',
    'token = {"access_token":"abc.def","refresh_token":"ghi.jkl"}',
    ['abc.def', 'ghi.jkl'],
  ],
  ['.m2/settings.xml', '<server><username>ada</username><password>secret-word</password></server>', ['secret-word']],
  ['.pgpass', 'db.example.com:5432:*:ada:secret-word\n*:*:*:ada:other-word', ['secret-word', 'other-word']],
  ['.vault-token', 'hvs.abcdefgh\n', ['hvs.abcdefgh']],
  ['a token in a comment', '# before: ghp_abcdefghijklmnopqrstuvwxyz', ['ghp_abcdefghijklmnopqrstuvwxyz']],
  ['JSON in base64', `auth=${base64('{"password": "secret-word"}')}`, ['secret-word']],
])('%s', (_, text, values) => {
  expect(tokensInText(text)).toEqual(expect.arrayContaining(values))
})

test.each([
  ['a variable in the place of a value', '//registry.example.com/:_authToken=${NPM_TOKEN}'],
  ['a name in a URL', 'https://ada@github.com'],
  ['the path of a file with a token', 'web_identity_token_file = /home/ada/token'],
  ['other settings', 'registry=https://registry.example.com/\nfund=false\n[profile work]\nregion = eu-west-1'],
  ['a variable that need not be set in the place of a value', 'token = "${TOKEN}?"'],
  ['a variable in the place of a password in XML', '<password>${env.TOKEN}</password>'],
])('%s is not secret', (_, text) => {
  expect(tokensInText(text)).toEqual([])
})

test('a text with more values than asked for says that these are not all', () => {
  const lines = (count: number) => Array.from({ length: count }, (_, at) => `token=value-${at}`).join('\n')
  expect(foundIn(lines(100), 100)).toMatchObject({ areAll: true, values: { length: 100 } })
  expect(foundIn(lines(101), 100)).toMatchObject({ areAll: false, values: { length: 100 } })
})

test.each(['abc${HOST}', '${HOST}abc', 'a${HOST}b', '$HOST', '{HOST}', '${HOST}??'])(
  'a value that only has a variable in it, or looks like one, is secret: %s',
  (value) => {
    expect(tokensInText(`token=${value}`)).toContain(value)
  },
)

test.each<[string, readonly string[]]>([
  ['token = a&b)c,d e', ['a&b)c,d e', 'a&b)c', 'a']],
  ['token: abc)', ['abc)', 'abc']],
  [String.raw`token="a\"b" x`, [String.raw`a\"b`, 'a"b']],
  ["token='a b' c", ['a b']],
  ['password: |  \r\n  secret-word\r\n', ['|', 'secret-word']],
  ['password: >-2\t\n\tsecret\n', ['>-2', 'secret']],
  ['password: |x\n  secret-word', ['|x']],
  ['password:\n  one\n  two: x\n', ['one']],
  ['password:\n  one\n  two\n', ['one', 'two']],
  ['password:\none\n', []],
  ['password: |\n  a=b\n  =c\n', ['|', 'a=b']],
  ['my-api_key: x', ['x']],
  ['keys: x', []],
  ['key-data: x', ['x']],
  ['token > abc <', ['abc']],
  ['token>\nabc\n<', ['abc']],
  ['login a password "b c" password d', ['b c', 'd']],
  ['xpassword g', []],
  ['a:1:b:c:d', ['d']],
  ['a:*:b:c:d', ['d']],
  [' a:1:b:c:d', []],
  ['a:123456:b:c:d', []],
  ['a:*:b:c:d e', []],
  ['https://:x@h', ['x']],
  ['https://a:b:c@h', ['b:c']],
  ['https://a:b%zz@h', ['b%zz']],
  ['https://twentycharacters1234@h', ['twentycharacters1234']],
  ['https://nineteen-characters@h', []],
  ['a b npm_abcdefghijklmnop', ['npm_abcdefghijklmnop']],
  ['a b npm_abcdefghijklmno', []],
  ['a b xnpm_abcdefghijklmnop', []],
  ['eight-ch', ['eight-ch']],
  ['seven-c', []],
  ['two words', []],
  ['-----BEGIN A KEY-----\nx\n-----END A KEY-----', []],
  ['-----BEGIN A PRIVATE KEY-----\nx', []],
  ['-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END', ['x']],
  ['token=YWRhOnNlY3JldA==', ['YWRhOnNlY3JldA==', 'ada:secret', 'secret']],
  ['token=YWRh', ['YWRh']],
  ['token=////////', ['////////']],
])('of %j exactly these values are secret: %j', (text, values) => {
  expect(tokensInText(text)).toEqual(values)
})
