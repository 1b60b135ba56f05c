/** The first start of the chat in a terminal, in a home of its own, with servers of the test in the place of the known ones. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KnownPlaces } from '../../../../src/cli/first-start/first-start.ts'
import type { Vendor } from '../../../../src/llm/endpoints/vendors.ts'
import { bundledProgram } from '../../../support/bundled-program.ts'
import { PATIENCE_MS } from '../../../support/patience.ts'
import { Terminal } from '../../chat/support/terminal.ts'

const PROGRAM = await bundledProgram(join(import.meta.dirname, '../children/first-start-program.ts'))

export const vendorAtPort = (port: number, label = 'Example'): Vendor => ({
  id: label.toLowerCase(),
  label,
  baseUrl: `http://127.0.0.1:${port}/v1`,
  keyVariables: ['EXAMPLE_API_KEY'],
  modelList: '/models',
  isLocal: false,
  provider: 'openai',
})

type Start = {
  readonly places?: Partial<KnownPlaces>
  readonly args?: readonly string[]
  readonly env?: Record<string, string>
  readonly rows?: number
}

export class FirstStartHome implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'first-start-'))
  readonly project = join(this.path, 'project')
  readonly settingsPath = join(this.path, '.openhands', 'settings_sdk.json')

  constructor() {
    mkdirSync(this.project)
  }

  start({ places = {}, args = [], env = {}, rows = 40 }: Start = {}): Terminal {
    const known: KnownPlaces = { localServers: [], localTimeoutMs: PATIENCE_MS, vendors: [], ...places }
    const own = {
      HOME: this.path,
      OPENHANDS_DATA_DIR: join(this.path, 'data'),
      FIRST_START_PLACES: JSON.stringify(known),
    }
    return new Terminal([process.execPath, PROGRAM.path, 'chat', ...args], {
      env: { ...PROGRAM.env, ...own, ...env },
      cwd: this.project,
      rows,
    })
  }

  get settings(): unknown {
    return JSON.parse(readFileSync(this.settingsPath, 'utf8'))
  }

  get mode(): string {
    return (statSync(this.settingsPath).mode & 0o777).toString(8)
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true, maxRetries: 3 })
  }
}
