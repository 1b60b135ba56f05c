/** Writes the Homebrew formula of a release: where the archive of each platform is, and its checksum. */

export type ReleasedArchive = {
  readonly file: string
  readonly platform: NodeJS.Platform
  readonly arch: string
  /** Hexadecimal digits. */
  readonly sha256: string
}

const SYSTEMS = { darwin: 'macos', linux: 'linux' } as const
const PROCESSORS: Readonly<Record<string, string>> = { x64: 'intel', arm64: 'arm' }

type Release = {
  readonly version: string
  readonly description: string
  /** The directory of the archives. */
  readonly url: string
  readonly archives: readonly ReleasedArchive[]
}

/** The text of `agent-server.rb`. */
export function homebrewFormula({ version, description, url, archives }: Release): string {
  const systems = Object.entries(SYSTEMS).map(([platform, system]) => {
    const own = archives.filter((archive) => archive.platform === platform)
    const needs = platform === 'linux' ? ['    depends_on "bubblewrap"', ''] : []
    return [`  on_${system} do`, ...needs, own.map((archive) => sourceOf(archive, url)).join('\n\n'), '  end'].join(
      '\n',
    )
  })
  return `class AgentServer < Formula
  desc ${quoted(description)}
  homepage ${quoted(url)}
  version ${quoted(version)}
  license "MIT"

  depends_on "ripgrep"

${systems.join('\n\n')}

  def install
    # Apple silicon runs signed programs only, and the archive is made on Linux.
    system "codesign", "--force", "--sign", "-", "agent-server" if OS.mac?
    bin.install "agent-server"
    man1.install "agent-server.1"
    generate_completions_from_executable(bin/"agent-server", "completion", shells: [:bash, :zsh, :fish])
  end

  service do
    run [opt_bin/"agent-server", "serve", "--generate-key", "--log-format", "json"]
    keep_alive crashed: true
    log_path var/"log/agent-server.log"
    error_log_path var/"log/agent-server.log"
  end

  test do
    assert_equal version.to_s, shell_output("#{bin}/agent-server --version").strip
  end
end
`
}

function sourceOf({ file, arch, sha256 }: ReleasedArchive, url: string): string {
  return `    on_${PROCESSORS[arch]} do
      url ${quoted(`${url.replace(/\/$/, '')}/${file}`)}
      sha256 "${sha256}"
    end`
}

/** Returns a Ruby string: `#` would begin an interpolation. */
const quoted = (text: string) => JSON.stringify(text).replaceAll('#', '\\#')
