/** Replays over the conversations of a test. */
import { join } from 'node:path'
import { pino } from 'pino'
import { CreateReplay } from '../../src/contract/replay.ts'
import type { Replay } from '../../src/contract/replay.ts'
import { ReplayFiles } from '../../src/replays/replay-files.ts'
import type { ReplayRecord } from '../../src/replays/replay-record.ts'
import { Replays } from '../../src/replays/replays.ts'
import type { Bench } from '../conversations/fixtures.ts'
import { MODEL_KEY } from '../conversations/fixtures.ts'
import { takeTime } from '../support/take-time.ts'

/** Of the manager that runs now. */
export function createReplays(bench: Bench, { beforeWrite = () => {} } = {}): Replays {
  const { manager, storage, dataDir, logged } = bench
  class WatchedFiles extends ReplayFiles {
    override async write(record: ReplayRecord): Promise<void> {
      beforeWrite()
      await super.write(record)
    }
  }
  const files = new WatchedFiles({
    directory: join(dataDir, 'replays'),
    sealerOf: (id) => storage.conversation(id).sealer,
    onDamaged: (_, path) => void logged.push(path),
  })
  const logger = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) })
  return new Replays({ manager, records: files, logger })
}

export const asked = (fields: object) => CreateReplay.parse({ max_cost_usd: 1, ...fields })

const anyone = () => true

/** Resolves to the replay when it is as wanted. */
export async function untilReplay(
  replays: Replays,
  { id }: Pick<Replay, 'id'>,
  fits: (replay: Replay) => boolean = ({ status }) => status !== 'running',
): Promise<Replay> {
  for (;;) {
    const replay = await replays.get(id, anyone)
    if (fits(replay)) return replay
    await takeTime(5)
  }
}

/** A model whose answers cost: each token of the scripted model is a thousandth of a dollar. */
export const pricedLlm = ({ model }: Pick<Bench, 'model'>) => ({
  model: 'scripted',
  base_url: model.baseUrl,
  api_key: MODEL_KEY,
  num_retries: 0,
  input_cost_per_token: 1e-3,
  output_cost_per_token: 1e-3,
})
