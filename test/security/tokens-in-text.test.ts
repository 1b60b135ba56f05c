/** Which values of a credential file are secret. */
import { expect, test } from 'vitest'
import { tokensInText } from '../../src/security/tokens-in-text.ts'

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
])('%s', (_, text, values) => {
  expect(tokensInText(text)).toEqual(expect.arrayContaining(values))
})

test.each([
  ['a variable in the place of a value', '//registry.example.com/:_authToken=${NPM_TOKEN}'],
  ['a name in a URL', 'https://ada@github.com'],
  ['the path of a file with a token', 'web_identity_token_file = /home/ada/token'],
  ['other settings', 'registry=https://registry.example.com/\nfund=false\n[profile work]\nregion = eu-west-1'],
])('%s is not secret', (_, text) => {
  expect(tokensInText(text)).toEqual([])
})
