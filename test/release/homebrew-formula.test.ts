import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { findCommand } from '../../scripts/provide.mjs'
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

/** A `Formula` that has what the formula calls, and prints what Homebrew would read. */
const STAND_IN = `
class Formula
  # Ruby has a function of this name.
  def self.test = puts("test ")
  def self.method_missing(name, *values)
    puts "#{name} #{values.join}"
    yield if block_given? && name.to_s.start_with?("on_")
  end
end
`

test.runIf(findCommand(['ruby']) !== undefined)('Ruby reads the formula, and no text of it as code', () => {
  const said = execFileSync('ruby', ['-w', '-'], { input: STAND_IN + homebrewFormula(form), encoding: 'utf8' })
  expect(said).toContain('desc Hosts "agents" #{exit}\n')
  expect(said.match(/^sha256 /gm)).toHaveLength(archives.length)
  expect(said).toMatch(/^service $/m)
})
