/** Which files of a person the file tools and the file routes may access. */
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { Config } from '../../src/config/config.ts'
import { defaultSettingsPath } from '../../src/config/paths.ts'
import { readRules } from '../../src/files/jail/file-gate.ts'
import type { ShellLauncher } from '../../src/sandbox/launch.ts'
import { fileRules } from '../../src/wiring/conversation-places.ts'

test.each(['none', 'bubblewrap'] as const)(
  'with the home of a person as the workdir, the settings file cannot be read, written or created: isolation %s',
  async (isolation) => {
    const path = defaultSettingsPath()
    const home = dirname(dirname(path))
    const places = { dataDir: '/data', workdirBase: '/data/workdirs', secretFiles: [], hiddenFiles: () => [] }
    const config = places as unknown as Config // what decides about files
    const conversation = { stateDirectory: '/data/sessions/a', workdir: () => home }
    const { judge } = await readRules(fileRules(config, { isolation } as ShellLauncher, conversation))
    expect(judge(path)).toMatchObject({ read: false, write: false })
    expect(judge(join(home, 'notes.md'))).toMatchObject({ read: true, write: true })
  },
)
