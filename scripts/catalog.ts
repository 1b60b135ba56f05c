/**
 * Renews `catalog/models.json`, what the server knows about models without a file or an endpoint that says more. It
 * comes from the price list in the Python package of LiteLLM, of the version and with the hash below; to renew it,
 * change both. Needs Python with pip.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bundle } from '../src/llm/catalog/bundled-form.ts'
import { rowOf } from '../src/llm/catalog/bundled-form.ts'
import { readLiteLlm } from '../src/llm/catalog/litellm-form.ts'
import type { ModelFacts } from '../src/llm/catalog/model-facts.ts'
import { keyOf, keysOf } from '../src/llm/catalog/model-names.ts'

const VERSION = '1.110.2'
const SHA256 = '9d94d1c7d524b6fd10c14f9c8c6c4f0ac31705f9964ac59dcfd8337c046d8917'
/** The wheel with this hash; those of other platforms have the same list. */
const PLATFORM = ['--platform', 'manylinux_2_28_x86_64', '--python-version', '3.12', '--only-binary', ':all:']
const LIST = 'litellm/model_prices_and_context_window_backup.json'

const CATALOG = join(import.meta.dirname, '../catalog/models.json')

/** The vendors that the server speaks to, and those whose models many gateways serve. */
const PROVIDERS = [
  'anthropic',
  'openai',
  'gemini',
  'mistral',
  'deepseek',
  'xai',
  'groq',
  'together_ai',
  'moonshot',
  'zai',
  'minimax',
]

/** Models that agents cannot work with. */
const UNWANTED =
  /audio|realtime|search|computer-use|deep-research|robotics|lyria|learnlm|guard|safeguard|tts|voxtral|^ft:|container|gemini-exp|omni|embed|^together-ai-/

/** OpenAI's whole windows, in which its list counts the output as well; other entries have the input alone. */
const WITH_OUTPUT = new Set([400_000, 1_050_000])

const list = JSON.parse(readPriceList()) as Record<string, unknown>
const entries = readLiteLlm(list)
const bundle = Object.fromEntries(PROVIDERS.map((provider) => [provider, rowsOf(provider)]))
writeFileSync(CATALOG, textOf(bundle))
const count = Object.values(bundle).reduce((sum, rows) => sum + Object.keys(rows).length, 0)
process.stdout.write(`catalog/models.json: ${count} models, ${textOf(bundle).length} bytes, litellm ${VERSION}\n`)

/** pip checks the hash. */
function readPriceList(): string {
  const folder = mkdtempSync(join(tmpdir(), 'catalog-'))
  try {
    const requirements = join(folder, 'requirements.txt')
    writeFileSync(requirements, `litellm==${VERSION} --hash=sha256:${SHA256}\n`)
    const python = (...args: string[]) => execFileSync('python3', ['-m', ...args], { stdio: ['ignore', 2, 2] })
    python('pip', 'download', '--no-deps', '--require-hashes', ...PLATFORM, '--dest', folder, '-r', requirements)
    const wheel = readdirSync(folder).find((name) => name.endsWith('.whl')) ?? ''
    python('zipfile', '--extract', join(folder, wheel), folder)
    return readFileSync(join(folder, LIST), 'utf8')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function rowsOf(provider: string): Bundle[string] {
  const models = [...(entries.get(provider)?.values() ?? [])]
    .filter(({ name, window }) => window !== undefined && !UNWANTED.test(name))
    .map((facts) => [facts.name, JSON.stringify(rowOf(provider === 'openai' ? ofInput(facts) : facts))] as const)
  const rows = new Map(models.map(([name, row]) => [keyOf(name), row]))
  // A dated name is looked up as its model, too.
  const isKnown = ([name, row]: (typeof models)[number]) =>
    keysOf(name)
      .slice(1)
      .some((key) => rows.get(key) === row)
  const kept = models.filter((model) => !isKnown(model)).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(kept.map(([name, row]) => [name, JSON.parse(row) as Bundle[string][string]]))
}

function ofInput(facts: ModelFacts): ModelFacts {
  const { window = 0, maxOutput = 0 } = facts
  return WITH_OUTPUT.has(window) ? { ...facts, window: window - maxOutput } : facts
}

/** One line for each model, so that a change is readable. */
function textOf(models: Bundle): string {
  const providers = Object.entries(models).map(([provider, rows]) => {
    const lines = Object.entries(rows).map(([name, row]) => `${JSON.stringify(name)}:${JSON.stringify(row)}`)
    return `${JSON.stringify(provider)}:{\n${lines.join(',\n')}\n}`
  })
  return `{\n${providers.join(',\n')}\n}\n`
}
