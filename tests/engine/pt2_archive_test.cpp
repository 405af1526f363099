// .pt2 archives: weights, sample inputs, several graphs, the layout before archives, and damaged ones.
#include <QtTest>
#include <random>

#include "engine/formats/exported.h"
#include "engine/formats/package.h"
#include "engine/formats/pt2.h"
#include "engine/interpret/interpret.h"
#include "tests/support/bytes.h"
#include "tests/support/graph_text.h"
#include "tests/support/pickle_builder.h"
#include "tests/support/pt2_builder.h"
#include "tests/support/suites.h"
#include "tests/support/zip_builder.h"

using namespace cutaway;
using namespace cutaway::testing;

class Pt2ArchiveTest : public QObject {
    Q_OBJECT

  private slots:
    void readsWeights();
    void buffersTakeNoGradient();
    void readsSampleInputs();
    void readsFieldsOfObjects();
    void readsInnerTensors();
    void readsOldLayout();
    void opensSeveralGraphs();
    void tellsOfCompiledPackages();
    void refusesArchives_data();
    void refusesArchives();
    void survivesDamage();
};

namespace {

Result<OpenedFile> openArchive(const std::string& bytes) {
    CT_TRY(const ZipArchive archive, ZipArchive::open(storageOf(bytes), "t.pt2"));
    return archive.find("serialized_exported_program.json") ? readFlatPt2(archive, {}) : readPt2(archive, {});
}
/// x + w with w a parameter, also reachable as v, both of f32[2].
Pt2Program weightProgram() {
    Pt2Program program = reluProgram();
    program.inputs = tensorArgument("p_w") + ", " + tensorArgument("b_v") + ", " + tensorArgument("x");
    program.inputSpecs =
        R"({"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}}, {"buffer": {"arg": {"name": "b_v"}, "buffer_name": "v", "persistent": true}}, )" +
        userInput("x");
    program.tensors += ", " + tensorValue("p_w", {"2"}, {"1"}) + ", " + tensorValue("b_v", {"2"}, {"1"});
    program.outputs = tensorArgument("relu") + ", " + tensorArgument("relu");
    program.outputSpecs =
        R"({"buffer_mutation": {"arg": {"name": "relu"}, "buffer_name": "v"}}, )" + userOutput("relu");
    return program;
}
std::string payload(const std::string& name, const std::string& path, const std::string& meta) {
    return "\"" + name + "\": {\"path_name\": \"" + path +
           "\", \"is_param\": true, \"use_pickle\": false, \"tensor_meta\": " + meta + "}";
}
std::string weights(const std::string& entries) { return "{\"config\": {" + entries + "}}"; }
const std::string kThree = std::string("\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40", 12);

}  // namespace

void Pt2ArchiveTest::readsWeights() {
    const std::string config = weights(payload("w", "weight_0", tensorMeta({"2"}, {"1"}, 7, "1")) + ", " +
                                       payload("v", "weight_0", tensorMeta({"2"}, {"2"})));
    const auto file =
        openArchive(pt2Archive(weightProgram().json(), {{"data/weights/model_weights_config.json", config},
                                                        {"data/weights/weight_0", kThree}}));
    QCOMPARE(failureOf(file), QString());
    const Module& module = *file->graphs[0].module;
    QCOMPARE(
        QString::fromStdString(graphText(module)),
        QString(
            "%p_w: f32[2]\n%b_v: f32[2]\n%x: f32[2]\n%relu: f32[2] = aten.relu.default(%x)\nreturn (%relu, %relu)\n"));
    const Tensor &w = module.tensors.at("w"), &v = module.tensors.at("v");
    QCOMPARE(w.storage().get(), v.storage().get());
    QVERIFY(toDouble(w.item(0)) == 2 && toDouble(w.item(1)) == 3 && toDouble(v.item(1)) == 3);
    QVERIFY(module.inputs[0].kind == InputSpec::Kind::Parameter && module.inputs[0].target == "w");
    QVERIFY(module.inputs[1].kind == InputSpec::Kind::Buffer && module.inputs[1].persistent);
    QVERIFY(module.outputs[0].kind == OutputSpec::Kind::BufferMutation && module.outputs[0].target == "v");

    const auto empty = openArchive(pt2Archive(
        weightProgram().json(), {{"data/weights/model_weights_config.json", config}, {"data/weights/weight_0", ""}}));
    QCOMPARE(failureOf(empty), QString());  // PAY-2
    QCOMPARE(toDouble(empty->graphs[0].module->tensors.at("w").item(1)), 0.0);
    QCOMPARE(empty->graphs[0].module->origin.remarks,
             std::vector<std::string>{"the data of 'w' is empty in the file (weight_0); it is taken to be zeros"});

    const auto missing =
        openArchive(pt2Archive(weightProgram().json(), {{"data/weights/model_weights_config.json", config}}));
    QCOMPARE(failureOf(missing), QString());
    QCOMPARE(tensorsWithoutData(*missing->graphs[0].module), (std::vector<std::string>{"v", "w"}));

    namespace p = pickle;
    const std::string saved = p::archive(
        p::whole(p::dict({{"w", p::tensor(p::storage(p::global("torch", "FloatStorage"), "0", 3), 1, {2}, {1})}})),
        {{"0", kThree}});
    const auto early = openArchive(pt2Archive(weightProgram().json(), {{"data/weights/model.pt", saved}}));
    QCOMPARE(failureOf(early), QString());
    QCOMPARE(toDouble(early->graphs[0].module->tensors.at("w").item(1)), 3.0);
}

/// A result with a gradient was written to the buffer, so PyTorch noted one for the buffer, which has none.
void Pt2ArchiveTest::buffersTakeNoGradient() {
    Pt2Program program = weightProgram();
    for (size_t at = 0; (at = program.tensors.find("\"requires_grad\": false", at)) != std::string::npos;)
        program.tensors.replace(at, 22, "\"requires_grad\": true");
    const auto file = openArchive(pt2Archive(program.json(), {}));
    QCOMPARE(failureOf(file), QString());
    const std::vector<Node*> inputs = file->graphs[0].module->graph().placeholders();
    QVERIFY(inputs[0]->type().tensor()->requiresGrad);
    QVERIFY(!inputs[1]->type().tensor()->requiresGrad);
}

void Pt2ArchiveTest::readsSampleInputs() {
    Pt2Program program = reluProgram();
    program.inputs += ", " + tensorArgument("a") + R"(, {"as_int": 3}, )" + tensorArgument("b");
    program.inputSpecs +=
        ", " + userInput("a") + R"(, {"constant_input": {"name": "k", "value": {"as_int": 3}}}, )" + userInput("b");
    program.tensors += ", " + tensorValue("a", {"2"}, {"1"}) + ", " + tensorValue("b", {"2"}, {"1"});
    program.inSpec =
        R"("[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": []}, {\"type\": \"builtins.dict\", \"context\": \"[\\\"a\\\", \\\"k\\\", \\\"b\\\"]\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}]}]")";
    namespace p = pickle;
    auto item = [](int offset) {
        return p::tensor(p::storage(p::global("torch", "FloatStorage"), "0", 3), offset, {}, {});
    };
    const std::string saved = p::archive(
        p::whole(p::tuple({p::tuple({item(0)}), p::dict({{"b", item(2)}, {"k", p::integer(3)}, {"a", item(1)}})})),
        {{"0", kThree}});
    const auto file = openArchive(pt2Archive(program.json(), {{"data/sample_inputs/model.pt", saved}}));
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(file->graphs[0].module->origin.remarks, std::vector<std::string>());
    const auto& inputs = file->graphs[0].sampleInputs;
    QCOMPARE(inputs.size(), size_t{3});  // x, then a and b in the order of the input tree
    for (int i = 0; i < 3; ++i) QCOMPARE(toDouble(inputs[static_cast<size_t>(i)].tensor()->item()), i + 1.0);

    const auto hostile = openArchive(pt2Archive(
        program.json(),
        {{"data/sample_inputs/model.pt", p::archive(p::whole(p::call(p::global("os", "system"), {p::text("x")})))}}));
    QCOMPARE(failureOf(hostile), QString());  // the program is still there
    QVERIFY(hostile->graphs[0].sampleInputs.empty());
    QVERIFY(QString::fromStdString(hostile->graphs[0].module->origin.remarks.at(0)).contains("os system"));
}

/// A dataclass and a namedtuple: their leaves are read, and neither is made. Fields stand in the order of the spec.
void Pt2ArchiveTest::readsFieldsOfObjects() {
    Pt2Program program = reluProgram();
    program.inputs += ", " + tensorArgument("a") + ", " + tensorArgument("b");
    program.inputSpecs += ", " + userInput("a") + ", " + userInput("b");
    program.tensors += ", " + tensorValue("a", {"2"}, {"1"}) + ", " + tensorValue("b", {"2"}, {"1"});
    const QString leaf = R"({\"type\": null, \"context\": null, \"children_spec\": []})";
    const QString spec =
        R"("[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"my.Out\", \"context\": \"%2\", \"children_spec\": [%1, %1]}, {\"type\": \"collections.namedtuple\", \"context\": \"my.NT\", \"children_spec\": [%1]}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]")";
    namespace p = pickle;
    const auto item = [](int offset) {
        return p::tensor(p::storage(p::global("torch", "FloatStorage"), "0", 3), offset, {}, {});
    };
    const std::string made = p::call(p::global("m", "Out"), {});
    const std::string object = made + p::dict({{"b", item(1)}, {"none", "N"}, {"a", item(0)}}) + "b";  // BUILD
    const std::string saved =
        p::archive(p::whole(p::tuple({p::tuple({object, p::call(p::global("m", "NT"), {item(2)})}), p::dict({})})),
                   {{"0", kThree}});
    const auto read = [&](const char* context) {
        program.inSpec = spec.arg(leaf, context).toStdString();
        return openArchive(pt2Archive(program.json(), {{"data/sample_inputs/model.pt", saved}}));
    };
    const auto file = read(R"([[\\\"a\\\", \\\"b\\\"], [\\\"none\\\"]])");
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(file->graphs[0].module->origin.remarks, std::vector<std::string>());
    const auto& inputs = file->graphs[0].sampleInputs;
    QCOMPARE(inputs.size(), size_t{3});
    for (int i = 0; i < 3; ++i) QCOMPARE(toDouble(inputs[static_cast<size_t>(i)].tensor()->item()), i + 1.0);
    const auto unnamed = read("null");
    QVERIFY(unnamed->graphs[0].sampleInputs.empty());
    QVERIFY(QString::fromStdString(unnamed->graphs[0].module->origin.remarks.at(0)).contains("class 'm Out'"));
}

/// A weight that is a tensor subclass: the plain tensors inside, at any depth, are the program's inputs. No class is
/// made.
void Pt2ArchiveTest::readsInnerTensors() {
    Pt2Program program = weightProgram();
    const auto inner = [](const std::string& result, const std::string& of, const std::string& name) {
        return call(result, "torch.ops.export.access_subclass_inner_tensor.default",
                    {argument("src_subclass_tensor", tensorArgument(of)),
                     argument("attr", "{\"as_string\": \"" + name + "\"}")});
    };
    const auto add = [](const std::string& result, const std::string& a, const std::string& b) {
        return call(result, "torch.ops.aten.add.Tensor",
                    {argument("self", tensorArgument(a)), argument("other", tensorArgument(b))});
    };
    program.nodes = inner("q", "p_w", "data") + ", " + inner("q_1", "p_w", "data") + ", " +
                    inner("in", "p_w", "inner") + ", " + inner("s", "in", "scale") + ", " + add("y", "q", "s") + ", " +
                    add("relu", "y", "q_1");
    for (const char* name : {"q", "q_1", "in", "s", "y"}) program.tensors += ", " + tensorValue(name, {"2"}, {"1"});

    namespace p = pickle;
    const auto wrapper = [](const std::string& cls, const std::string& state) {
        return p::call(p::global("torch._tensor", "_rebuild_from_type_v2"),
                       {p::global("torch._utils", "_rebuild_wrapper_subclass"), p::global("my.package", cls),
                        p::tuple({p::global("my.package", cls), p::global("torch", "float32")}), state});
    };
    const auto part = [](int offset) {
        return p::tensor(p::storage(p::global("torch", "FloatStorage"), "0", 3), offset, {2}, {1});
    };
    const std::string config =
        weights("\"w\": {\"path_name\": \"weight_0\", \"is_param\": true, \"use_pickle\": true}");
    const auto open = [&](const std::string& value) {
        return openArchive(
            pt2Archive(program.json(), {{"data/weights/model_weights_config.json", config},
                                        {"data/weights/weight_0", p::archive(p::whole(value), {{"0", kThree}})}}));
    };
    const std::string options = p::call(p::global("my.package", "Options"), {p::text("asymmetric")});
    const auto file = open(wrapper(
        "Outer", p::dict({{"data", part(0)},
                          {"options", options},
                          {"inner", wrapper("Inner", p::tuple({p::dict({{"scale", part(1)}}), p::dict({})}))}})));
    QCOMPARE(failureOf(file), QString());
    const Module& module = *file->graphs[0].module;
    QCOMPARE(module.origin.remarks, std::vector<std::string>());
    QCOMPARE(QString::fromStdString(graphText(module)),
             QString("%p_w_data: f32[2]\n%p_w_inner_scale: f32[2]\n%b_v: f32[2]\n%x: f32[2]\n"
                     "%y: f32[2] = aten.add.Tensor(%p_w_data, %p_w_inner_scale, 1)\n"
                     "%relu: f32[2] = aten.add.Tensor(%y, %p_w_data, 1)\nreturn (%relu, %relu)\n"));
    QCOMPARE(module.inputs[0].target, std::string("w.data"));
    QCOMPARE(module.inputs[1].target, std::string("w.inner.scale"));
    QVERIFY(module.inputs[1].kind == InputSpec::Kind::Parameter && module.inputs[2].target == "v");
    QCOMPARE(toDouble(module.tensors.at("w.data").item(0)), 1.0);
    QCOMPARE(toDouble(module.tensors.at("w.inner.scale").item(0)), 2.0);

    const auto lacking = open(wrapper("Outer", p::kNone));
    QCOMPARE(failureOf(lacking), QString());
    QVERIFY(QString::fromStdString(lacking->graphs[0].module->origin.remarks.at(0)).contains("is not a plain tensor"));
    QCOMPARE(tensorsWithoutData(*lacking->graphs[0].module),
             (std::vector<std::string>{"v", "w.data", "w.inner.scale"}));
    const auto other = open(wrapper(
        "Outer", p::dict({{"data", p::tensor(p::storage(p::global("torch", "FloatStorage"), "0", 3), 0, {3}, {1})}})));
    QVERIFY(failureOf(other).contains("the data of 'w.data' is f32[3]"));
}

void Pt2ArchiveTest::readsOldLayout() {
    namespace p = pickle;
    Pt2Program program = weightProgram();
    program.version = R"("major": 8, "minor": 1)";
    const std::string saved = p::archive(
        p::whole(p::dict({{"w", p::tensor(p::storage(p::global("torch", "FloatStorage"), "0", 3), 1, {2}, {1})},
                          {"v", p::tensor(p::storage(p::global("torch", "FloatStorage"), "0", 3), 0, {2}, {1})}})),
        {{"0", kThree}});
    auto flat = [&](const char* version) {
        return buildZip({{.name = "version", .content = version},
                         {.name = "serialized_exported_program.json", .content = program.json(), .deflate = true},
                         {.name = "serialized_state_dict.pt", .content = saved},
                         {.name = "serialized_constants.pt", .content = ""},
                         {.name = "extra_files/note", .content = "hi"}});
    };
    const auto file = openArchive(flat("8.1"));
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(file->description, std::string(".pt2 (PyTorch 2.11.0, schema 8.1)"));
    QCOMPARE(toDouble(file->graphs[0].module->tensors.at("w").item(1)), 3.0);
    QCOMPARE(file->contents, std::vector<std::string>{"extra_files/note (2 bytes)"});
    QVERIFY(failureOf(openArchive(flat("3"))).startsWith("t.pt2: version '3' from before schema 8"));
    QVERIFY(failureOf(openArchive(flat("7.1"))).startsWith("t.pt2: schema version 7"));
}

void Pt2ArchiveTest::opensSeveralGraphs() {
    const std::string bytes = pt2Archive("", {{"models/encoder.json", reluProgram().json()},
                                              {"models/decoder.json", reluProgram().json()},
                                              {"data/aotinductor/encoder/x.so", "ELF"}});
    const auto file = openArchive(bytes);
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(file->graphs.size(), size_t{2});
    QVERIFY(file->graphs[0].name == "encoder" && file->graphs[1].name == "decoder");
    QCOMPARE(file->contents, std::vector<std::string>{"data/aotinductor/encoder/x.so (3 bytes)"});
    const auto archive = ZipArchive::open(storageOf(bytes), "t");
    const auto one = readPt2(*archive, {.graph = "decoder"});
    QCOMPARE(failureOf(one), QString());
    QCOMPARE(one->graphs.size(), size_t{1});
    QCOMPARE(failureOf(readPt2(*archive, {.graph = "none"})), QString("t: no graph named 'none'"));
}

/// What PyTorch 2.11 and 2.15 generate beside a compiled library is read for what it says of the model.
void Pt2ArchiveTest::tellsOfCompiledPackages() {
    const char* const wrapper =
        "extern \"C\"  void  cpp_fused_relu_0(const float* in_ptr0)\n{\n}\n"
        "AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map)\n"
        "    : AOTInductorModelBase(1, 1, 2, device_str, std::move(cubin_dir), true) {\n"
        "    inputs_info_[0].name = \"arg2_1\";\n"
        "    constants_info_[0].name = \"fc_weight\";\n"
        "    constants_info_[0].dtype = static_cast<int32_t>(cached_torch_dtype_float32);\n"
        "    constants_info_[0].offset = 0;\n"
        "    constants_info_[0].data_size = 448;\n"
        "    constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);\n"
        "    constants_info_[0].shape = {10, 11};\n"
        "    constants_info_[0].original_fqn = \"fc.weight\";\n"
        "    constants_info_[1].name = \"_folded\";\n"
        "    constants_info_[1].dtype = cached_torch_dtype_int64;\n"
        "    constants_info_[1].shape = {};\n"
        "    constants_info_[99999999999].name = \"no\";\n"
        "    outputs_info_[0].name = \"output0\";\n"
        "    kernels.triton_poi_fused_0 = loadKernel(\"/tmp/x.cubin\", \"triton_poi_fused_0\", 0, this->cubin_dir_);\n";
    const auto archive =
        ZipArchive::open(storageOf(pt2Archive("", {{"data/aotinductor/model/a.wrapper.so", "ELF"},
                                                   {"data/aotinductor/model/a.wrapper.cpp", wrapper},
                                                   {"data/aotinductor/model/a.wrapper_metadata.json",
                                                    R"({"AOTI_DEVICE_KEY": "cpu", "AOTI_CPU_ISA": "AVX512"})"}})),
                         "t.pt2");
    QVERIFY(archive.has_value());
    const OpenedFile opened = describePackage(readPackage(treeOf(*archive), "t.pt2")), *const file = &opened;

    QVERIFY(file->format == FileFormat::CompiledPackage);
    std::string all;
    for (const std::string& line : file->contents) all += line + "\n";
    for (const char* line : {"data/aotinductor/model/a.wrapper.cpp (", "generated source)\n", "\ninput 'arg2_1': ?\n",
                             "\nconstant 'fc.weight': f32[10, 11], Parameter\n", "\nconstant '_folded': i64[]\n",
                             "\noutput 'output0': ?\n", "\nkernel cpp_fused_relu_0\n", "\nkernel triton_poi_fused_0\n"})
        QVERIFY2(all.find(line) != std::string::npos, (line + ("\n" + all)).c_str());
    QVERIFY2(all.find("'no'") == std::string::npos, all.c_str());
    std::string remarks;
    for (const std::string& line : file->remarks) remarks += line + "\n";
    QVERIFY2(remarks.find("AOTI_DEVICE_KEY = cpu\n") != std::string::npos, remarks.c_str());
}

void Pt2ArchiveTest::refusesArchives_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("message");
    auto row = [](const char* name, const std::string& bytes, const char* message) {
        QTest::newRow(name) << QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size())) << message;
    };
    auto withPayload = [](const std::string& meta, const std::string& bytes = kThree) {
        return pt2Archive(weightProgram().json(),
                          {{"data/weights/model_weights_config.json", weights(payload("w", "weight_0", meta))},
                           {"data/weights/weight_0", bytes}});
    };
    const char* at = "t.pt2: data/weights/model_weights_config.json: 'w': ";
    auto payloadRow = [&](const char* name, const std::string& bytes, const std::string& message) {
        row(name, bytes, (at + message).c_str());
    };
    payloadRow("payload too short", withPayload(tensorMeta({"4"}, {"1"})),
               "invalid payload: it reaches 4 elements of 4 bytes, the storage has 12 bytes");
    payloadRow("payload offset", withPayload(tensorMeta({"2"}, {"1"}, 7, "2")),
               "invalid payload: it reaches 4 elements of 4 bytes, the storage has 12 bytes");
    payloadRow("payload overflow", withPayload(tensorMeta({"2", "4611686018427387904"}, {"0", "0"})),
               "the product of the sizes overflows 64 bits");
    payloadRow("payload symbolic", withPayload(tensorMeta({R"({"as_expr": {"expr_str": "s0"}})"}, {"1"})),
               "sizes, strides and offset of a payload must be numbers");
    payloadRow("zeros without end", withPayload(tensorMeta({"1000000000000"}, {"1"}), ""),
               "the payload is empty, but its sizes need more than 1 GiB");
    row("another shape", withPayload(tensorMeta({"3"}, {"1"})),
        "t.pt2: models/model.json: the data of 'w' is f32[3], the graph says f32[2]");
    row("another dtype", withPayload(tensorMeta({"2"}, {"1"}, 4)),
        "t.pt2: models/model.json: the data of 'w' is i32[2], the graph says f32[2]");
    row("config", pt2Archive(weightProgram().json(), {{"data/weights/model_weights_config.json", "{}"}}),
        "t.pt2: data/weights/model_weights_config.json: 'config' is missing");
    row("archive version",
        buildZip({{.name = "m/archive_format", .content = "pt2"}, {.name = "m/archive_version", .content = "1"}}),
        "t.pt2: archive version '1', this reader knows 0 export the program again with PyTorch 2.8 to 2.11");
}
void Pt2ArchiveTest::refusesArchives() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, message);
    QCOMPARE(failureOf(openArchive(bytes.toStdString())), message);
}

void Pt2ArchiveTest::survivesDamage() {
    const uint32_t seed = 20260104;
    qInfo("seed %u", seed);
    std::mt19937 random(seed);
    const std::string config = weights(payload("w", "weight_0", tensorMeta({"2"}, {"1"}, 7, "1")));
    const std::string good = weightProgram().json();
    const std::string junk = "0123456789-{}[]\",:nsx";
    for (int trial = 0; trial < 3000; ++trial) {
        std::string json = good, meta = config;
        std::string& target = trial % 2 ? json : meta;
        for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
            target[random() % target.size()] = junk[random() % junk.size()];
        const auto file = openArchive(
            pt2Archive(json, {{"data/weights/model_weights_config.json", meta}, {"data/weights/weight_0", kThree}}));
        if (!file) continue;
        for (const OpenedGraph& graph : file->graphs) graphText(*graph.module);
    }
}

CUTAWAY_SUITE(Pt2ArchiveTest)
#include "pt2_archive_test.moc"
