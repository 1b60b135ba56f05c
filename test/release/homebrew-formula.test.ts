import { expect, test } from 'vitest'
import { homebrewFormula } from '../../scripts/release/homebrew-formula.ts'

const PLATFORMS = ['darwin', 'linux'] as const
const archives = PLATFORMS.flatMap((platform) =>
  ['x64', 'arm64'].map((arch) => ({
    file: `agent-server-1.2.3-${platform}-${arch}.tar.gz`,
    platform,
    arch,
    sha256: `${platform === 'linux' ? 'a' : 'b'}${arch === 'x64' ? '0' : '1'}`.repeat(32),
  })),
)
const form = { version: '1.2.3', description: 'Hosts "agents" #{exit}', url: 'https://example.com/releases/', archives }

test('the formula has the address and the checksum of each archive, under its system and processor', () => {
  const formula = homebrewFormula(form)
  const found = [...formula.matchAll(/on_(\w+) do\n\s+url "(.*)"\n\s+sha256 "(.*)"/g)]
  const expected = archives.map(({ file, arch, sha256 }) => [
    arch === 'x64' ? 'intel' : 'arm',
    `https://example.com/releases/${file}`,
    sha256,
  ])
  expect(found.map(([, ...values]) => values)).toEqual(expected)
  expect([...formula.matchAll(/^ {2}on_(macos|linux) do/gm)].map(([, name]) => name)).toEqual(['macos', 'linux'])
})
