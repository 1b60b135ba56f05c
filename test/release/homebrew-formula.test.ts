import { execFile } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
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

/** What the formula calls of Homebrew, and what it says of one system and processor. */
const HOMEBREW = `
require 'json'
SYSTEM, PROCESSOR = ARGV
FOUND = { 'needs' => [], 'ran' => [] }
module OS
  def self.mac? = SYSTEM == 'macos'
end
class Place < String
  def /(name) = Place.new("#{self}/#{name}")
  def install(name) = FOUND['ran'] << "install #{name} #{self}"
end
class Service
  def method_missing(name, value) = FOUND[name.to_s] = value
  def opt_bin = Place.new('bin')
  def var = Place.new('var')
end
class Formula
  def self.method_missing(name, value) = FOUND[name.to_s] = value
  def self.depends_on(name) = FOUND['needs'] << name
  %w[macos linux].each { |system| define_singleton_method("on_#{system}") { |&block| block.call if system == SYSTEM } }
  %w[intel arm].each { |name| define_singleton_method("on_#{name}") { |&block| block.call if name == PROCESSOR } }
  def self.service(&block) = Service.new.instance_eval(&block)
  def self.test(&block) = FOUND['tested'] = new.instance_eval(&block)
  def bin = Place.new('bin')
  def man1 = Place.new('man1')
  def version = '1.2.3'
  def system(*words) = FOUND['ran'] << words.join(' ')
  def generate_completions_from_executable(*words, shells:) = FOUND['ran'] << (words + shells).join(' ')
  def shell_output(command) = command == 'bin/agent-server --version' ? "1.2.3\n" : ''
  def assert_equal(expected, found) = expected == found
end
load './agent-server.rb'
AgentServer.new.install
puts JSON.generate(FOUND)
`

const RUBY = findCommand(['ruby'])

test.runIf(RUBY !== undefined)(
  'ruby reads the formula, which installs and signs the archive of the system, and describes a service',
  async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'homebrew-formula-'))
    await writeFile(join(directory.path, 'agent-server.rb'), homebrewFormula(form))
    await writeFile(join(directory.path, 'homebrew.rb'), HOMEBREW)
    for (const { arch, file, platform, sha256 } of archives) {
      const where = [platform === 'linux' ? 'linux' : 'macos', arch === 'x64' ? 'intel' : 'arm']
      const { stdout } = await promisify(execFile)(RUBY!, ['homebrew.rb', ...where], { cwd: directory.path })
      const found: unknown = JSON.parse(stdout)
      const installs = [
        'install agent-server bin',
        'install agent-server.1 man1',
        'bin/agent-server completion bash zsh fish',
      ]
      expect(found, file).toMatchObject({
        url: `https://example.com/releases/${file}`,
        sha256,
        desc: form.description,
        version: form.version,
        needs: platform === 'linux' ? ['ripgrep', 'bubblewrap'] : ['ripgrep'],
        ran: platform === 'linux' ? installs : ['codesign --force --sign - agent-server', ...installs],
        run: ['bin/agent-server', 'serve', '--generate-key', '--log-format', 'json'],
        keep_alive: { crashed: true },
        tested: true,
      })
    }
  },
)
