// `muster completion`: the scripts a shell loads. They hand the words typed so far to `muster complete-words`, never through
// eval: a command line may hold any text.

import { Argument, type Command } from 'commander'
import type { Cli, GlobalOptions } from './cli.ts'
import { performs, documented } from './verb.ts'
import { printer } from './print.ts'

export const declareCompletion = (completion: Command, cli: Cli): void => {
  documented(completion, [
    ['source <(muster completion bash)', 'or into /etc/bash_completion.d/muster'],
    ['muster completion zsh > "${fpath[1]}/_muster"', ''],
    ['muster completion fish > ~/.config/fish/completions/muster.fish', ''],
  ]).addArgument(new Argument('<shell>', 'which shell').choices(shells))
  performs(cli, completion, completionVerb)
}

const completionVerb = (cli: Cli, options: GlobalOptions, shell: Shell): Promise<void> => {
  const script = completionScript(shell)
  printer(cli, options).answer({ shell, script }, () => script.trimEnd().split('\n'))
  return Promise.resolve()
}

export const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

export const completeWordsCommand = 'complete-words'

const bash = `# completion of muster for bash
_muster() {
  local value
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    COMPREPLY+=("$value")
  done < <("\${COMP_WORDS[0]}" ${completeWordsCommand} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _muster muster
`

const zsh = `#compdef muster
# completion of muster for zsh
_muster() {
  local -a found
  local line
  for line in "\${(@f)$("\${words[1]}" ${completeWordsCommand} "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${line//:/\\\\:}/$'\\t'/:}")
  done
  if (( \${#found} )); then
    _describe muster found
  else
    _files
  fi
}
if [[ \${funcstack[1]} = _muster ]]; then
  _muster "$@"
else
  compdef _muster muster
fi
`

const fish = `# completion of muster for fish
function __muster_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found ($words[1] ${completeWordsCommand} $words[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c muster -f -a '(__muster_complete)'
`

const completionScript = (shell: Shell): string => ({ bash, zsh, fish })[shell]
