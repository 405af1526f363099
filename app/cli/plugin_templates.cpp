#include "app/cli/plugin_templates.h"

#include <algorithm>
#include <cctype>

#include "app/cli/plugin_sources.h"

namespace cutaway::cli {
namespace {

/// A sample: what it gives, in which languages it can be copied, what it is called, its text.
struct Template {
    const char *kind, *language, *sample, *end, *text;
};
// Written in C so that C++ takes it, too.
constexpr Template kTemplates[] = {
    {"pass", "c", "fuse_addcmul", ".c", kFuseAddcmul},
    {"pass", "cpp", "fuse_addcmul", ".cpp", kFuseAddcmul},
    {"pass", "python", "drop_double_neg", ".py", kDropDoubleNeg},
    {"rules", "", "fuse_silu", ".rules", kFuseSilu},
    {"importer", "cpp", "import_onnx", ".cpp", kImportOnnx},
    {"importer", "python", "import_fx", ".py", kImportFx},
    {"oracle", "python", "ask_product", ".py", kAskProduct},
    {"oracle", "c", "ask_size", ".c", kAskSize},
    {"oracle", "cpp", "ask_size", ".cpp", kAskSize},
    {"coloring", "c", "color_flop", ".c", kColorFlop},
    {"coloring", "cpp", "color_flop", ".cpp", kColorFlop},
    {"coloring", "python", "color_family", ".py", kColorFamily},
    {"judge", "python", "judge_cosine", ".py", kJudgeCosine},
    {"library", "c", "blas_product", ".c", kBlasProduct},
    {"library", "cpp", "blas_product", ".cpp", kBlasProduct},
    {"library", "python", "running_sum", ".py", kRunningSum},
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

}  // namespace

Result<NewPlugin> newPlugin(const std::string& name, const std::string& kind, const std::string& language) {
    const bool sound = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::islower(c) || std::isdigit(c) || c == '_';
    });
    if (!sound) return invalidInput("a plugin's name is made of a-z, 0-9 and _", name);
    std::string others;
    for (const Template& one : kTemplates) {
        if (kind != one.kind) continue;
        if (*one.language != '\0' && language != one.language) {
            others += (others.empty() ? "" : ", ") + std::string(one.language);
            continue;
        }
        NewPlugin made{name + one.end, replaced(one.text, one.sample, name), {}};
        const std::string end = one.end;
        const std::string library = end == ".c" || end == ".cpp" ? name + ".so" : made.file;
        if (library != made.file) {
            const std::string more = std::string(one.sample) == "import_onnx"
                                         ? " onnx.pb.cc -lprotobuf    # protoc --cpp_out=. onnx.proto makes onnx.pb.cc"
                                     : std::string(one.sample) == "blas_product" ? " -lblas"
                                                                                 : "";
            made.next = "    " + std::string(end == ".c" ? "cc" : "c++ -std=c++17") + " -O2 -shared -fPIC -o " +
                        library + " " + made.file + more + "\n";
        }
        made.next += "    cutaway-cli plugin check " + library + "\n    install -D -t ~/.local/share/cutaway/plugins " +
                     library + "\n";
        return made;
    }
    return Error{ErrorCode::InvalidInput,
                 "there is no template of this kind in this language",
                 kind,
                 {"there are templates for --language " + others}};
}

}  // namespace cutaway::cli
