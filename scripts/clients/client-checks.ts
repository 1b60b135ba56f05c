/** Defines which clients are tested, and their one test: generate, compile, run. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { readExpectedOutput, readSection } from './page.ts'
import type { Toolchain, ToolchainName } from './toolchains.ts'
import { OPENAPI_GENERATOR } from './toolchains.ts'

export type ClientCheck = {
  /** The section of examples/clients.md. */
  readonly heading: string
  readonly toolchain: ToolchainName
  readonly generator: string
  readonly program: string
  /** The command for bash, after the client was generated. */
  readonly compile: string
  /** Puts the files that the commands expect next to the program. */
  readonly prepare?: (directory: string, work: string) => void
}

const ROOT = join(import.meta.dirname, '../..')
const STEP_MS = 5 * 60_000

const npmVersion = (name: string) => {
  const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, 'npm/package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  return `${name} ${dependencies[name]}`
}
const pinned = (file: string, pattern: RegExp) =>
  pattern.exec(readFileSync(join(import.meta.dirname, file), 'utf8'))?.[1] ?? 'unknown'

const TSC =
  'npx tsc --noEmit --strict --skipLibCheck --target es2023 --lib es2023,dom,dom.iterable,dom.asynciterable --module esnext --moduleResolution bundler --types node main.ts'
const linkModules = (directory: string, work: string) => {
  symlinkSync(join(directory, 'node_modules'), join(work, 'node_modules'))
  cpSync(join(directory, 'package.json'), join(work, 'package.json'))
}

export const CLIENT_CHECKS: readonly ClientCheck[] = [
  {
    heading: 'TypeScript with openapi-fetch',
    toolchain: 'npm',
    generator: `${npmVersion('openapi-typescript')}, ${npmVersion('openapi-fetch')}`,
    program: 'main.ts',
    compile: TSC,
    prepare: linkModules,
  },
  {
    heading: 'TypeScript with hey-api',
    toolchain: 'npm',
    generator: npmVersion('@hey-api/openapi-ts'),
    program: 'main.ts',
    compile: TSC,
    prepare: linkModules,
  },
  {
    heading: 'Python with openapi-python-client',
    toolchain: 'python',
    generator: `openapi-python-client ${pinned('python/requirements.txt', /^openapi-python-client==(.*)$/m)}`,
    program: 'main.py',
    compile: 'mypy main.py agent_server_client',
  },
  {
    heading: 'Go with oapi-codegen',
    toolchain: 'go',
    generator: `oapi-codegen ${pinned('go/go.mod', /oapi-codegen\/v2 v(\S+)/)}`,
    program: 'main.go',
    compile: 'go vet ./...',
    prepare(directory, work) {
      for (const file of ['go.mod', 'go.sum']) cpSync(join(directory, file), join(work, file))
    },
  },
  {
    heading: 'Java with OpenAPI Generator',
    toolchain: 'java',
    generator: `openapi-generator ${OPENAPI_GENERATOR}, okhttp-gson`,
    program: 'Main.java',
    compile:
      'javac -encoding UTF-8 -proc:none -nowarn -d classes $(find client/src/main/java -name "*.java") Main.java 2>&1 | grep -v "^Note:" || true; test -f classes/Main.class',
    prepare(directory, work) {
      const jar = `openapi-generator-cli-${OPENAPI_GENERATOR}.jar`
      symlinkSync(join(directory, jar), join(work, 'openapi-generator-cli.jar'))
    },
  },
]

/** How far it came; `fault` is what the first step that failed printed. */
export type Outcome = {
  readonly generates: boolean
  readonly compiles: boolean
  readonly works: boolean
  readonly fault?: string
}

/** Works in `work`, an empty directory that it makes. `settings` are the variables that the programs read. */
export async function checkClient(
  check: ClientCheck,
  { directory, env }: Exclude<Toolchain, { missing: string }>,
  work: string,
  settings: Record<string, string>,
): Promise<Outcome> {
  const { generate, program, run } = readSection(check.heading)
  mkdirSync(work, { recursive: true })
  cpSync(join(ROOT, 'openapi/openapi.json'), join(work, 'openapi.json'))
  writeFileSync(join(work, check.program), program)
  check.prepare?.(directory, work)
  const bash = async (script: string) =>
    await execa('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: work,
      env: { ...env, ...settings },
      stdin: 'ignore',
      all: true,
      reject: false,
      timeout: STEP_MS,
    })

  const outcome = { generates: false, compiles: false, works: false }
  const generated = await bash(generate)
  if (generated.failed) return { ...outcome, fault: generated.all }
  const compiled = await bash(check.compile)
  if (compiled.failed) return { ...outcome, generates: true, fault: compiled.all }
  const ran = await bash(run)
  const works = !ran.failed && ran.stdout === readExpectedOutput().trimEnd()
  return { generates: true, compiles: true, works, ...(!works && { fault: ran.all }) }
}
